/* Parsing of smaps and maps, and the data of this process. */
#include "expect.h"
#include "model.h"

#include <stdlib.h>

static void test_smaps(void)
{
    /* Whole extents of 0x200000..0xa00000 are four: all, some and none of them huge; a hugetlb page; an extent beyond the
       end. */
    static const struct {
        const char *text;
        uint64_t start;
        int answer;
    } given[] = {
        {"100000-a00000 rw-p 00000000 00:00 0\nKernelPageSize: 4 kB\nAnonHugePages: 8192 kB\n", 0x200000, 1},
        {"100000-a00000 rw-p 00000000 00:00 0\nKernelPageSize: 4 kB\nAnonHugePages: 4096 kB\n", 0x200000, -1},
        {"100000-a00000 rw-p 00000000 00:00 0\nKernelPageSize: 4 kB\nAnonHugePages: 0 kB\n", 0x200000, 0},
        {"100000-a00000 rw-p 00000000 00:00 0\nKernelPageSize: 4 kB\nAnonHugePages: 8192 kB\n", 0, 0},
        {"1000-2000 r--p 00000000 00:00 0\nKernelPageSize: 4 kB\n200000-400000 rw-p 0 0 0\nKernelPageSize: 2048 kB\n", 0x200000, 1},
        {"200000-400000 rw-p 0 0 0\nKernelPageSize: 4 kB\n400000-600000 rw-p 0 0 0\nAnonHugePages: 2048 kB\n", 0x200000, 0},
    };
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        FILE *file = tmpfile();
        if (file == NULL) exit(1);
        fputs(given[i].text, file);
        fseek(file, 0, SEEK_SET);
        const int answer = pw_smaps_is_huge(file, given[i].start);
        fclose(file);
        if (answer == given[i].answer) continue;
        printf("smaps %zu: %d, not %d\n", i, answer, given[i].answer);
        faults++;
    }
}

static uint64_t one_page(const char *file)
{
    (void)file;
    return 4096;
}

static void test_maps(void)
{
    /* The program's .data and .bss, heap, an array and the stack; not its code, nor a library with its .bss, to which an
       array is attached. */
    static const char text[] = "10000-20000 r-xp 00000000 08:01 7 /home/a program\n"
                               "20000-21000 rw-p 00010000 08:01 7 /home/a program\n"
                               "21000-23000 rw-p 00000000 00:00 0\n"
                               "30000-40000 rw-p 00000000 00:00 0 [heap]\n"
                               "50000-60000 r-xp 00000000 08:01 8 /lib/libc.so.6\n"
                               "60000-61000 rw-p 00010000 08:01 8 /lib/libc.so.6\n"
                               "61000-66000 rw-p 00000000 00:00 0\n"
                               "66000-67000 ---p 00000000 00:00 0\n"
                               "70000-90000 rw-p 00000000 00:00 0\n"
                               "a0000-b0000 rw-p 00000000 00:00 0 [stack]\n"
                               "c0000-c1000 r--p 00000000 00:00 0 [vvar]\n";
    static const struct pw_stretch wanted[] = {
        {0x20000, 0x21000}, {0x21000, 0x23000}, {0x30000, 0x40000},
                                               {0x62000, 0x66000}, {0x70000, 0x90000}, {0xa0000, 0xb0000}};
    struct pw_stretch data[8];
    FILE *file = tmpfile();
    if (file == NULL) exit(1);
    fputs(text, file);
    fseek(file, 0, SEEK_SET);
    EXPECT(pw_maps_data(file, NULL, one_page, data, 8) == 6);
    EXPECT(memcmp(data, wanted, sizeof wanted) == 0);
    fseek(file, 0, SEEK_SET);
    EXPECT(pw_maps_data(file, NULL, one_page, data, 2) == 2);
    fseek(file, 0, SEEK_SET);
    EXPECT(pw_maps_data(file, "/lib/libc.so.6", one_page, data, 8) == 6);
    EXPECT(data[0].start == 0x22000 && data[2].start == 0x60000 && data[3].start == 0x61000);
    fclose(file);

    /* Of this process: an array on the heap and one on the stack are data, code and text are not. */
    struct pw_observer observer;
    pw_observer_open(&observer);
    char *heap = malloc(100);
    EXPECT(pw_observer_is_data(&observer, (uint64_t)(uintptr_t)heap));
    EXPECT(pw_observer_is_data(&observer, (uint64_t)(uintptr_t)data));
    EXPECT(!pw_observer_is_data(&observer, (uint64_t)(uintptr_t)text));
    EXPECT(!pw_observer_is_data(&observer, 0));
    EXPECT(!pw_observer_is_data(&observer, UINT64_MAX - 4095));
    free(heap);
    pw_observer_close(&observer);
}

int main(void)
{
    test_smaps();
    test_maps();
    return reported_faults();
}
