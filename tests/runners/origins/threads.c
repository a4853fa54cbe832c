/* Four threads; each writes to 64 pages in turn, and to 64 pages that it maps each time. `forks`: while children start. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { threads = 4, pages = 64, page = 4096, times = 100 };

static void *work(void *unused)
{
    volatile char *memory = aligned_alloc(page, pages * page);
    for (int k = 0; k < times; k++)
        for (int i = 0; i < pages; i++) memory[i * page] = 1;
    return unused;
}

static void *map(void *unused)
{
    for (int k = 0; k < times; k++) {
        volatile char *memory = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int i = 0; i < pages; i++) memory[i * page] = 1;
        munmap((void *)memory, pages * page);
    }
    return work(unused);
}

int main(int count, char **argument)
{
    pthread_t thread[threads];
    (void)argument;
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, map, NULL) != 0) return 1;
    for (int i = 0; count > 1 && i < times; i++) {
        const pid_t child = fork();
        if (child == 0) _exit(0);
        waitpid(child, NULL, 0);
    }
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    return 0;
}
