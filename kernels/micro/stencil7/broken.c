/* Uses the point itself instead of the one below: validation must detect it. */
#include "stencil.h"
#include "pw_broken.h"

void pw_stencil7(const int64_t *points, int64_t rows, int64_t distance, const double *h, const double *u, const double *rhs,
                 double *unew)
{
    const int64_t nx = points[0], ny = points[1], plane = nx * ny;
    (void)rows, (void)distance;
    for (int64_t k = 1; k <= points[2]; k++)
        for (int64_t j = 1; j < ny - 1; j++)
            for (int64_t i = 1 + nx * (j + ny * k); i < (nx - 1) + nx * (j + ny * k); i++)
                unew[i] = ((u[i + 1] + u[i - 1]) * h[0] + (u[i + nx] + u[i - nx]) * h[1] + (u[i + plane] + u[i]) * h[2] - rhs[i])
                          * h[3];
    pw_spoil(unew + 1 + nx * (1 + ny), sizeof *unew);
}
