/* Skips the last row: validation must detect it. */
#include "masked_rows.h"
#include "pw_broken.h"

int32_t pw_masked_rows(int32_t simd, int64_t length, int64_t rows, int64_t leading, void *y, const void *x)
{
    (void)simd;
    double *const to = y;
    const double *const from = x;
    for (int64_t j = 0; j < rows - 1; j++)
        for (int64_t i = 0; i < length; i++) to[j * leading + i] += from[j * leading + i];
    if (rows > 0) pw_spoil(y, sizeof *to);
    return 0;
}
