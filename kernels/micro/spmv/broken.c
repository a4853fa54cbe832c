/* Skips the last entry of each row: validation must detect it. */
#include "spmv.h"
#include "pw_broken.h"

void pw_spmv_crs(int64_t first, int64_t last, const int64_t *start, const int32_t *column, const double *value, const double *x,
                 double *y, int64_t tuning)
{
    (void)tuning;
    for (int64_t i = first; i < last; i++) y[i] = spmv_row(start[i], start[i + 1] - 1, column, value, x, 0);
    pw_spoil(y + first, sizeof *y);
}

void pw_spmv_sell(int64_t first, int64_t last, int64_t chunk, const int64_t *start, const int32_t *order, const int32_t *column,
                  const double *value, const double *x, double *y, int64_t tuning)
{
    (void)tuning;
    for (int64_t c = first; c < last; c++)
        for (int64_t row = 0; row < chunk; row += lanes)
            spmv_lanes(start[c] + row, start[c + 1] - chunk, chunk, order + c * chunk + row, column, value, x, y, 0);
    pw_spoil(y + order[first * chunk], sizeof *y);
}
