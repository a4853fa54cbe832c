/* y = A*x. The entries of A are in `value` and `column` (columns count from 0), in one of two formats. */
#ifndef PAGEWISE_SPMV_H
#define PAGEWISE_SPMV_H

#include "pw_vector.h"

/* CRS: row i has the entries start[i]..start[i+1]-1. Rows first..last-1. */
void pw_spmv_crs(int64_t first, int64_t last, const int64_t *start, const int32_t *column, const double *value, const double *x,
                 double *y, int64_t tuning);

/* SELL-C-sigma: chunks of `chunk` rows (8, 16, 32), padded to their longest row, from start[c] on, the first entries of
 * their rows adjacent, then the second ones. Row r of chunk c is row order[c*chunk + r] of A. Chunks first..last-1. */
void pw_spmv_sell(int64_t first, int64_t last, int64_t chunk, const int64_t *start, const int32_t *order, const int32_t *column,
                  const double *value, const double *x, double *y, int64_t tuning);

/* `tuning`: the prefetch distance in entries (software), with as many additional entries after the last in
 * `column`; the entries of a block (block). */

enum { lanes = 8 }; /* rows of a chunk at once */

/* The sum of value * x over entries, with the x of the entry `distance` later prefetched unless that is 0. */
PW_INLINE double spmv_row(int64_t from, int64_t to, const int32_t *column, const double *value, const double *x, int64_t distance)
{
    double total = 0;
    for (int64_t k = from; k < to; k++) {
        if (distance) pw_prefetch_read(x + column[k + distance]);
        total += value[k] * x[column[k]];
    }
    return total;
}

/* The same for `lanes` rows, whose entries are adjacent, `chunk` before the next ones. */
PW_INLINE void spmv_lanes(int64_t from, int64_t to, int64_t chunk, const int32_t *order, const int32_t *column,
                          const double *value, const double *x, double *y, int64_t distance)
{
    double total[lanes] = {0};
    for (int64_t k = from; k < to; k += chunk)
        for (int64_t r = 0; r < lanes; r++) {
            if (distance) pw_prefetch_read(x + column[k + r + distance]);
            total[r] += value[k + r] * x[column[k + r]];
        }
    for (int64_t r = 0; r < lanes; r++) y[order[r]] = total[r];
}

#endif
