/* The lines that are new to a row, those of the plane above, of rhs, and of unew if its stores are regular, are
 * prefetched at a distance. */
#include "stencil.h"

PW_INLINE void prefetch_line(const double *above, const double *rhs, double *unew, int64_t distance)
{
    pw_prefetch_read(above + distance);
    pw_prefetch_read(rhs + distance);
    if (stencil_allocates) pw_prefetch_write(unew + distance);
}

void pw_stencil7(int64_t nx, int64_t ny, int64_t planes, int64_t rows, int64_t tuning, const double *h, const double *u,
                 const double *rhs, double *unew)
{
    stencil_rows(nx, ny, planes, rows, tuning, h, u, rhs, unew, stencil_no_prefetch, prefetch_line);
}
