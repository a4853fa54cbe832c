/* The word of each update is prefetched `tuning` updates ahead; the next step's values are computed one step early, so that
 * the prefetches continue across the end of a step. */
#include "random_access.h"

#include <string.h>

void pw_random_access(int64_t steps, int64_t *state, int64_t *table, int64_t mask, int64_t tuning)
{
    int64_t window[2 * lanes]; /* this step's values and the next's */
    random_step(state, window);
    for (int64_t k = 0; k < tuning; k++) pw_prefetch_write(table + (window[k] & mask));
    for (int64_t step = 0; step < steps; step++) {
        random_step(window, window + lanes);
        for (int64_t k = 0; k < lanes; k++) {
            pw_prefetch_write(table + (window[k + tuning] & mask));
            table[window[k] & mask] ^= window[k];
        }
        memcpy(state, window, sizeof *state * lanes);
        memcpy(window, window + lanes, sizeof *window * lanes);
    }
}
