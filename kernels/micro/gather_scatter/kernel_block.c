/* The lines that a block of indices names are loaded before the first of them is processed, so that their misses overlap. */
#include "gather_scatter.h"

PW_INLINE void preload(const double *a, const double *b, int64_t at)
{
    pw_preload(b + at);
    pw_preload(a + at);
}

void pw_indirect_run(int64_t n, double *a, const double *b, const int32_t *c, int64_t tuning)
{
    indirect_block(n, a, b, c, tuning, gather_scatter, preload);
}
