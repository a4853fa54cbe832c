/* The lines that are new to a row, those of the plane above and of rhs, are loaded before the row is processed. */
#include "stencil.h"

PW_INLINE void preload_row(const double *above, const double *rhs, double *unew, int64_t n)
{
    (void)unew;
    for (int64_t i = 0; i < n; i += pw_line_doubles) pw_preload(above + i);
    for (int64_t i = 0; i < n; i += pw_line_doubles) pw_preload(rhs + i);
}

void pw_stencil7(int64_t nx, int64_t ny, int64_t planes, int64_t rows, int64_t tuning, const double *h, const double *u,
                 const double *rhs, double *unew)
{
    stencil_rows(nx, ny, planes, rows, tuning, h, u, rhs, unew, preload_row, stencil_no_prefetch);
}
