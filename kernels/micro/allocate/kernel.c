/* The addresses go through memory that is opaque to the compiler, so that it cannot remove the pair. */
#include "heap.h"

#include <stdlib.h>

int64_t pw_heap_cycle(int64_t passes, int64_t live, int64_t bytes, int64_t page, char **block)
{
    int64_t sum = 0;
    for (int64_t pass = 0; pass < passes; pass++) {
        for (int64_t i = 0; i < live; i++) {
            block[i] = malloc((size_t)bytes);
            if (block[i] == NULL) {
                while (i > 0) free(block[--i]);
                return -1;
            }
            for (int64_t at = page; page > 0 && at < bytes; at += page) block[i][at] = 1;
            *(int64_t *)(void *)block[i] = i + 1;
        }
        for (int64_t i = 0; i < live; i++) {
            sum += *(int64_t *)(void *)block[i];
            free(block[i]);
        }
    }
    return sum;
}
