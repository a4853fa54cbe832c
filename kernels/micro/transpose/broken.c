/* Skips the last column: validation must detect it. */
#include "transpose.h"
#include "pw_broken.h"

void pw_transpose_naive(int64_t n, int64_t leading, int64_t first, int64_t last, const double *a, double *b, int64_t add)
{
    for (int64_t j = first; j < last - 1; j++) transpose_scalar(0, n, leading, a + j, b + j * leading, add);
    pw_spoil(b + first * leading, sizeof *b);
}

void pw_transpose_tiled(int64_t n, int64_t leading, int64_t first, int64_t last, const double *a, double *b, int64_t add)
{
    pw_transpose_naive(n, leading, first, last, a, b, add);
}
