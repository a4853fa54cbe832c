/* The timed kernels: y = A*x. The entries of A are in `value` and `column` (columns count from 0), in one of two formats. */
#ifndef PAGEWISE_SPMV_H
#define PAGEWISE_SPMV_H

#include "pw_widths.h"

/* The elements of `extent`: chunks to process; rows per chunk, 1 in CRS; and the prefetch distance in entries (software), with
 * as many additional entries after the last in `column`, or the entries of a block (block). */
enum { spmv_chunks, spmv_rows, spmv_tuning };

/* CRS: row i has the entries start[i]..start[i+1]-1. */
void pw_spmv_crs(const int64_t *extent, const int64_t *start, const int32_t *column, const double *value, const double *x,
                 double *y);

/* SELL-C-sigma: chunks of rows (8, 16, 32), padded to their longest row, from start[c] on, the first entries of their rows
 * adjacent, then the second ones. Row r of chunk c is row order[c*rows + r] of A. */
void pw_spmv_sell(const int64_t *extent, const int64_t *start, const int32_t *order, const int32_t *column, const double *value,
                  const double *x, double *y);

enum { lanes = 8 }; /* rows of a chunk at once */

#endif
