/* Skips the last row of every call: validation must detect it. */
#define PW_BROKEN
#include "kernel.c"

/* Instead of kernel.f90's. */
void pw_chains_source(int64_t fmas, int64_t rows, int64_t distance, const double *c, double *y)
{
    (void)fp64_scalar_chains(chains_source, fmas, rows + 1, distance, c, y + distance * chains_row);
}

void pw_chains_interleaved(int64_t fmas, int64_t rows, const double *c, const double *x, double *y)
{
    (void)fp64_scalar_chains(chains_interleaved, fmas, rows + 1, (y - x) / chains_row, c, y);
}
