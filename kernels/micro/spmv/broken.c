/* Skips the last entry of each row: validation must detect it. */
#include "pw_broken.h"
#include "spmv.h"

void pw_spmv_crs(const int64_t *extent, const int64_t *start, const int32_t *column, const double *value, const double *x,
                 double *y)
{
    for (int64_t i = 0; i < extent[spmv_chunks]; i++) {
        y[i] = 0;
        for (int64_t k = start[i]; k < start[i + 1] - 1; k++) y[i] += value[k] * x[column[k]];
    }
    pw_spoil(y, sizeof *y);
}

void pw_spmv_sell(const int64_t *extent, const int64_t *start, const int32_t *order, const int32_t *column, const double *value,
                  const double *x, double *y)
{
    const int64_t rows = extent[spmv_rows];
    for (int64_t i = 0; i < extent[spmv_chunks] * rows; i++) {
        double total = 0;
        for (int64_t k = start[i / rows] + i % rows; k < start[i / rows + 1] - rows; k += rows) total += value[k] * x[column[k]];
        y[order[i]] = total;
    }
    pw_spoil(y + order[0], sizeof *y);
}
