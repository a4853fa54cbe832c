/* The lines that an index names are prefetched `tuning` indices ahead. */
#include "gather_scatter.h"

PW_INLINE void prefetch(const double *a, const double *b, int64_t at)
{
    pw_prefetch_read(b + at);
    pw_prefetch_write(a + at);
}

void pw_indirect_run(int64_t n, double *a, const double *b, const int32_t *c, int64_t tuning)
{
    indirect_software(n, a, b, c, tuning, gather_scatter, prefetch);
}
