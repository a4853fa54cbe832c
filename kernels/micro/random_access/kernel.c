/* Explicit code of every variant; loop.f90 is the plain loop of loop=compiler. The next step's values are computed one step
 * early, so that prefetches continue across the end of a step. */
#include "random_access.h"
#include "pw_widths.h"

#include <string.h>

#if defined(PW_LOOP_EXPLICIT)

/* Updates per iteration of every variant. */
enum { group = 8 };

PW_INLINE void prefetch(const int64_t *word)
{
#if defined(PW_PREFETCH_SOFTWARE)
    pw_prefetch_write(word);
#else
    (void)word;
#endif
}

/* All words of a block of updates are read before the first of them is updated, so that their misses overlap. */
PW_INLINE void preload(int64_t count, const int64_t *value, const int64_t *table, int64_t mask)
{
#if defined(PW_PREFETCH_BLOCK)
    for (int64_t k = 0; k < count; k++) pw_preload(table + (value[k] & mask));
#else
    (void)count, (void)value, (void)table, (void)mask;
#endif
}

/* Update by `count` values; the words of the values `distance` later are prefetched. */
PW_INLINE void update(int64_t count, const int64_t *value, int64_t distance, int64_t *table, int64_t mask)
{
    int64_t k = 0;
    PW_NO_UNROLL
    for (; k + group <= count; k += group) {
        PW_UNROLL
        for (int u = 0; u < group; u++) {
            prefetch(table + (value[k + u + distance] & mask));
            table[value[k + u] & mask] ^= value[k + u];
        }
    }
#if defined(PW_PREFETCH_BLOCK) /* other variants update by all lanes, in whole groups */
    for (; k < count; k++) table[value[k] & mask] ^= value[k];
#endif
}

void pw_random_access(int64_t steps, int64_t *state, int64_t *table, int64_t mask, int64_t tuning)
{
#if defined(PW_PREFETCH_BLOCK)
    const int64_t block = tuning;
#else
    const int64_t block = lanes;
#endif
    int64_t window[2 * lanes]; /* this step's values and the next's */
    random_step(state, window);
    for (int64_t k = 0; k < tuning && k < lanes; k++) prefetch(table + (window[k] & mask));
    for (int64_t step = 0; step < steps; step++) {
        random_step(window, window + lanes);
        for (int64_t first = 0; first < lanes; first += block) {
            const int64_t count = first + block < lanes ? block : lanes - first;
            preload(count, window + first, table, mask);
            update(count, window + first, tuning, table, mask);
        }
        memcpy(state, window, sizeof *state * lanes);
        memcpy(window, window + lanes, sizeof *window * lanes);
    }
}

#endif
