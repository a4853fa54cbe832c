/* Spends its time at one block of memory, in threads and children, too: `where --fast`.

       sampled SECONDS [forks | executes | threads] */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { words = 1 << 23 };

static double seconds;

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
    uint64_t *memory = malloc(words * sizeof *memory), at = 1;
    if (memory == NULL) exit(1);
    memset(memory, 1, words * sizeof *memory);
    for (const double begin = used(); used() < begin + seconds;)
        for (int i = 0; i < 100000; i++) {
            at = at * UINT64_C(6364136223846793005) + 1;
            small[i & 63] += memory[at >> 41];
        }
    free(memory);
    return unused;
}

int main(int count, char **given)
{
    const char *mode = count > 2 ? given[2] : "";
    seconds = atof(given[1]);
    if (strcmp(mode, "threads") == 0) {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, slow, NULL);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    } else if (*mode != '\0') {
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
