/* The plain loops with non-temporal stores of whole lines. */
#include "transpose.h"

void pw_transpose_naive(int64_t n, int64_t leading, int64_t first, int64_t last, const double *a, double *b, int64_t add)
{
    for (int64_t j = first; j < last; j++) {
        double *column = b + j * leading;
        const double *row = a + j;
        int64_t i = transpose_head(n, column);
        transpose_scalar(0, i, leading, row, column, add);
        for (; i + pw_line_doubles <= n; i += pw_line_doubles)
            for (int64_t v = i; v < i + pw_line_doubles; v += pw_vector_doubles) {
                pw_vector x;
                for (int64_t k = 0; k < pw_vector_doubles; k++) PW_SET_LANE(x, k, row[(v + k) * leading]);
                pw_stream(column + v, add ? pw_load(column + v) + x : x);
            }
        transpose_scalar(i, n, leading, row, column, add);
    }
    pw_stream_fence();
}
