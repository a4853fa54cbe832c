/* Uses memory in one way or another: memory WAY [SECONDS]. Prints a sum, so that nothing is left out. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1ul << 20)
#define TEXT (10 * MIB)

static char zeroed[48 * MIB];
#ifdef LARGE_DATA
static char filled[16 * MIB] = {1};
#endif

#ifdef LARGE_TEXT
/* Machine code of 10 MiB, which runs through its last pages. */
__asm__(".text\n.balign 64\n.type code, @function\ncode: .skip 10485696, 0x90\n mov %rdi, %rax\n ret\n");
extern long code(long);
#endif

/* Writes before it reads: memory that is read first gets the zero page, and no mTHP afterwards. */
static long touch(char *memory, size_t bytes)
{
    long sum = 0;
    for (size_t at = 0; at < bytes; at += 512) sum += memory[at] = (char)(at >> 9);
    return sum;
}

static long for_a_while(char *memory, size_t bytes, double seconds)
{
    long sum = 0;
    clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
    do sum += touch(memory, bytes);
    while (clock() < end);
    return sum;
}

int main(int count, char **arguments)
{
    const char *way = count > 1 ? arguments[1] : "large";
    double seconds = count > 2 ? atof(arguments[2]) : 0.1;
    long sum = 0, exact = 0; /* exact: the same in every run */
    if (!strcmp(way, "large")) {
        char *memory = malloc(64 * MIB);
        sum = for_a_while(memory, 64 * MIB, seconds);
        free(memory);
    } else if (!strcmp(way, "static")) {
        exact = touch(zeroed, sizeof zeroed);
        sum = for_a_while(zeroed, sizeof zeroed, seconds);
#ifdef LARGE_DATA
        for (size_t at = 0; at < sizeof filled; at++) exact += filled[at];
        sum += filled[0] + for_a_while(filled, sizeof filled, seconds);
#endif
    } else if (!strcmp(way, "pieces")) {
        /* More than a window of the preloaded library holds, some of them freed. */
        enum { PIECES = 30000, BYTES = 3000 };
        static char *pieces[PIECES];
        for (int round = 0; round < 2; round++) {
            for (int number = 0; number < PIECES; number++)
                if (!pieces[number]) {
                    pieces[number] = calloc(1, BYTES);
                    exact += pieces[number][BYTES - 1] + touch(pieces[number], BYTES) * (number % 7);
                }
            for (int number = 0; round == 0 && number < PIECES; number += 2) free(pieces[number]), pieces[number] = NULL;
        }
        char *large = calloc(1, 5 * MIB);
        for (size_t at = 0; at < 5 * MIB; at += 64) exact += large[at]++;
        large = realloc(large, 11 * MIB);
        for (size_t at = 0; at < 5 * MIB; at += 64) exact += large[at];
        sum = for_a_while(large, 11 * MIB, seconds);
    } else if (!strcmp(way, "shared")) {
        /* 24 MiB and a rest, which no huge page fits. */
        size_t bytes = 24 * MIB + 5000;
        int segment = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
        char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        char *attached = segment < 0 ? (void *)-1 : shmat(segment, NULL, 0);
        shmctl(segment, IPC_RMID, NULL);
        if (memory == MAP_FAILED || attached == (void *)-1) return 4;
        sum = for_a_while(memory, bytes, seconds) + for_a_while(attached, bytes, seconds);
        if (!fork()) memory[0] = 77, _exit(0);
        wait(NULL);
        if (memory[0] != 77 || munmap(memory, bytes)) return 5;
    } else if (!strcmp(way, "kept")) {
        /* Shared memory that a process drops or shrinks is the same for others, with its content. */
        char *memory = mmap(NULL, 24 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return 4;
        memory[100] = 55;
        if (madvise(memory, 4096, MADV_DONTNEED) || memory[100] != 55) return 5;
        memory = mremap(memory, 24 * MIB, 16 * MIB, MREMAP_MAYMOVE);
        if (memory == MAP_FAILED) return 6;
        if (!fork()) memory[100] = 77, _exit(0);
        wait(NULL);
        if (memory[100] != 77 || munmap(memory, 16 * MIB)) return 7;
    } else if (!strcmp(way, "mapped")) {
        char *memory = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        sum = for_a_while(memory, 64 * MIB, seconds);
    } else if (!strcmp(way, "fork")) {
        for (int child = 0; child < 2; child++)
            if (!fork()) {
                char *memory = malloc(32 * MIB);
                exit(for_a_while(memory, 32 * MIB, seconds) == 0);
            }
        int status;
        while (wait(&status) > 0) sum += status;
    } else if (!strcmp(way, "again")) {
        for (int number = 0; number < 20; number++) {
            char *memory = malloc(40 * MIB);
            sum += touch(memory, 40 * MIB);
            free(memory);
        }
#ifdef LARGE_TEXT
    } else if (!strcmp(way, "code")) {
        clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
        do sum += code(3);
        while (clock() < end);
#endif
    } else if (!strcmp(way, "short")) {
        char *memory = malloc(8 * MIB);
        sum = touch(memory, 8 * MIB);
        free(memory);
    } else if (!strcmp(way, "crash")) {
        puts("about to crash");
        fflush(stdout);
        raise(SIGSEGV);
    } else if (!strcmp(way, "wrong")) {
        puts("this went wrong");
        return 3;
    } else if (!strcmp(way, "sleep")) {
        sleep((unsigned)seconds);
    } else {
        return 2;
    }
    printf("sum: %ld\nrate: %.3f GB/s\nexact: %ld\n", sum, 1.5, exact);
    return 0;
}
