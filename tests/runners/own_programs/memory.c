/* Uses memory in one way or another: memory WAY [SECONDS]. Prints a sum, so that nothing is left out. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1ul << 20)
#define TEXT (10 * MIB)

static char zeroed[48 * MIB];

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
    long sum = 0;
    if (!strcmp(way, "large")) {
        char *memory = malloc(64 * MIB);
        sum = for_a_while(memory, 64 * MIB, seconds);
        free(memory);
    } else if (!strcmp(way, "small")) {
        enum { PIECES = 400000 };
        static char *pieces[PIECES];
        for (int number = 0; number < PIECES; number++) sum += (pieces[number] = calloc(1, 100))[number % 100];
        sum += for_a_while((char *)pieces, sizeof pieces, seconds);
    } else if (!strcmp(way, "static")) {
        sum = for_a_while(zeroed, sizeof zeroed, seconds);
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
    } else if (!strcmp(way, "environment")) {
        const char *names[] = {"GLIBC_TUNABLES", "LD_PRELOAD", "MINE"};
        for (int number = 0; number < 3; number++)
            printf("%s=%s\n", names[number], getenv(names[number]) ? getenv(names[number]) : "");
    } else {
        return 2;
    }
    printf("sum: %ld\nrate: %.3f GB/s\n", sum, 1.5);
    return 0;
}
