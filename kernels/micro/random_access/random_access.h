/* The pseudo-random sequence of HPC Challenge RandomAccess and the timed update of the table by it.
 *
 * The sequence is a linear feedback shift register over GF(2): x(k+1) = 2*x(k), plus `polynomial` where the top bit falls out
 * (primitive polynomial x^63 + x^2 + x + 1). It is cut into `lanes` pieces that are processed concurrently, so that up to
 * `lanes` updates are known in advance; the rules allow 1024. */
#ifndef PAGEWISE_RANDOM_ACCESS_H
#define PAGEWISE_RANDOM_ACCESS_H

#include "pw_vector.h"

enum { lanes = 128, polynomial = 7 };

/* The timed kernel: `steps` updates from each of the `lanes` values in `state`, which
 * advance; the table has mask + 1 words. `tuning` is the prefetch distance in updates (software), the updates
 * of a block (block), at most `lanes`, and unused otherwise. */
void pw_random_access(int64_t steps, int64_t state[], int64_t table[], int64_t mask, int64_t tuning);

/* Advance all lanes by one step. */
PW_INLINE void random_step(const int64_t *from, int64_t *to)
{
    for (int k = 0; k < lanes; k++) to[k] = (int64_t)((uint64_t)from[k] << 1) ^ ((from[k] >> 63) & polynomial);
}

#endif
