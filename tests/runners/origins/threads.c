/* Four threads; each writes to 64 pages in turn. */
#include <pthread.h>
#include <stdlib.h>

enum { threads = 4, pages = 64, page = 4096, times = 100 };

static void *work(void *unused)
{
    volatile char *memory = aligned_alloc(page, pages * page);
    for (int k = 0; k < times; k++)
        for (int i = 0; i < pages; i++) memory[i * page] = 1;
    return unused;
}

int main(void)
{
    pthread_t thread[threads];
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, work, NULL) != 0) return 1;
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    return 0;
}
