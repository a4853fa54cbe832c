/* Skips the last block of a pass: validation must detect it. */
#include "heap.h"

#include <stdlib.h>

int64_t pw_heap_cycle(int64_t passes, int64_t live, int64_t bytes, int64_t page, char **block)
{
    int64_t sum = 0;
    (void)page;
    for (int64_t pass = 0; pass < passes; pass++) {
        for (int64_t i = 0; i < live - 1; i++) {
            block[i] = malloc((size_t)bytes);
            if (block[i] == NULL) return -1;
            sum += i + 1;
            free(block[i]);
        }
    }
    return sum;
}
