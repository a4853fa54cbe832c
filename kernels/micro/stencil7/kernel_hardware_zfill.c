/* Lines zeroed before they are stored; hardware prefetch only. */
#include "stencil.h"

void pw_stencil7(int64_t nx, int64_t ny, int64_t planes, int64_t rows, int64_t tuning, const double *h, const double *u,
                 const double *rhs, double *unew)
{
    stencil_rows(nx, ny, planes, rows, tuning, h, u, rhs, unew, stencil_no_prefetch, stencil_no_prefetch);
}
