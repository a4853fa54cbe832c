/* The words of a block of updates are all read before the first of them is updated, so that their misses overlap. */
#include "random_access.h"

void pw_random_access(int64_t steps, int64_t *state, int64_t *table, int64_t mask, int64_t tuning)
{
    for (int64_t step = 0; step < steps; step++) {
        random_step(state, state);
        for (int64_t first = 0; first < lanes; first += tuning) {
            int64_t end = first + tuning < lanes ? first + tuning : lanes;
            for (int64_t k = first; k < end; k++) pw_preload(table + (state[k] & mask));
            for (int64_t k = first; k < end; k++) table[state[k] & mask] ^= state[k];
        }
    }
}
