/* Uses the point itself instead of the one below: validation must detect it. */
#include "stencil.h"

void pw_stencil7(int64_t nx, int64_t ny, int64_t planes, int64_t rows, int64_t tuning, const double *h, const double *u,
                 const double *rhs, double *unew)
{
    int64_t plane = nx * ny;
    (void)rows, (void)tuning;
    for (int64_t k = 1; k <= planes; k++)
        for (int64_t j = 1; j < ny - 1; j++)
            for (int64_t i = 1 + nx * (j + ny * k); i < (nx - 1) + nx * (j + ny * k); i++)
                unew[i] = ((u[i + 1] + u[i - 1]) * h[0] + (u[i + nx] + u[i - nx]) * h[1] + (u[i + plane] + u[i]) * h[2] - rhs[i])
                          * h[3];
}
