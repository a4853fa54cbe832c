/* Sums over short rows. */
#ifndef PAGEWISE_MASKED_ROWS_H
#define PAGEWISE_MASKED_ROWS_H

#include <stdint.h>

enum { masked_rows_longest = 8 };

/* y(i,j) = y(i,j) + x(i,j), i = 1..length (1 to 8), j = 1..rows, in rows `leading` numbers apart; by vectors of the width
 * `simd`, of which the elements after the row are masked. Returns 0, or 1 if the build has no masked vectors of it. */
int32_t pw_masked_rows(int32_t simd, int64_t length, int64_t rows, int64_t leading, void *y, const void *x);

#endif
