/* Skips the last row of every call: validation must detect it. */
#define pw_chains pw_chains_short
#include "kernel.c"
#undef pw_chains

#include "pw_broken.h"

/* Instead of kernel.f90's. */
void pw_chains_source(int64_t fmas, int64_t rows, int64_t distance, const double *c, double *y)
{
    (void)pw_chain_scalar_run(1, fmas, rows, distance, c, y + distance * chains_row);
}

void pw_chains_interleaved(int64_t fmas, int64_t rows, const double *c, const double *x, double *y)
{
    (void)pw_chain_scalar_run(PW_CHAINS_MOST, fmas, rows, (y - x) / chains_row, c, y);
}

int32_t pw_chains(int32_t simd, int32_t order, int64_t at_once, int64_t fmas, int64_t rows, int64_t distance, const double *c,
                  double *y)
{
    const int32_t status = pw_chains_short(simd, order, at_once, fmas, rows - 1, distance, c, y);
    if (rows > 0) pw_spoil(y, sizeof *y);
    return status;
}
