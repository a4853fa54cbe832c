/* Updates without those of one lane: validation must detect it. */
#include "random_access.h"

void pw_random_access(int64_t steps, int64_t *state, int64_t *table, int64_t mask, int64_t tuning)
{
    (void)tuning;
    for (int64_t step = 0; step < steps; step++) {
        random_step(state, state);
        for (int64_t k = 1; k < lanes; k++) table[state[k] & mask] ^= state[k];
    }
}
