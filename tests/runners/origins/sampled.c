/* Spends its time at one block of memory, in threads and children, too: `where --fast`.

       sampled SECONDS [forks | executes | threads | moves | reserves] */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { words = 1 << 23 };

static double seconds;
static const char *mode = "";

static double used(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Reads in random order, and adds up in a small array, which threads do not share. */
__attribute__((noinline)) static void *slow(void *unused)
{
    volatile uint64_t small[64] = {0};
    const size_t bytes = words * sizeof(uint64_t);
    const int maps = MAP_PRIVATE | MAP_ANONYMOUS;
    void *block = MAP_FAILED;
    if (strcmp(mode, "moves") == 0) {
        block = mremap(mmap(NULL, bytes / 2, PROT_READ | PROT_WRITE, maps, -1, 0), bytes / 2, bytes, MREMAP_MAYMOVE);
    } else if (strcmp(mode, "reserves") == 0) {
        block = mmap(NULL, 4 * bytes, PROT_NONE, maps, -1, 0);
        mprotect(block, bytes, PROT_READ | PROT_WRITE);
    } else {
        block = malloc(bytes);
    }
    uint64_t *memory = block, at = 1;
    memset(memory, 1, bytes);
    for (const double begin = used(); used() < begin + seconds;)
        for (int i = 0; i < 100000; i++) {
            at = at * UINT64_C(6364136223846793005) + 1;
            small[i & 63] += memory[at >> 41];
        }
    return unused;
}

int main(int count, char **given)
{
    if (count > 2) mode = given[2];
    seconds = atof(given[1]);
    if (strcmp(mode, "threads") == 0) {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, slow, NULL);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    } else if (strcmp(mode, "forks") == 0 || strcmp(mode, "executes") == 0) {
        for (int i = 0; i < 2; i++) {
            if (fork() != 0) continue;
            if (strcmp(mode, "executes") == 0) execl(given[0], given[0], given[1], (char *)NULL);
            slow(NULL);
            _exit(0);
        }
        while (wait(NULL) > 0) continue;
    } else {
        slow(NULL);
    }
    return 0;
}
