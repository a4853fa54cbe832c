/* The explicit widths; the compiled loops are in chains.f90.in. */
#include "chains.h"
#include "pw_peak.h"

void pw_chains_source(int64_t fmas, int64_t rows, int64_t distance, const double *c, double *y);
void pw_chains_interleaved(int64_t fmas, int64_t rows, const double *c, const double *x, double *y);

#define PW_TEMPLATE "chains_width.h"
#define PW_TYPE chain
#define PW_T double
#include "pw_each_width.h"

int64_t pw_chains_most(void)
{
    return PW_CHAINS_MOST;
}

int32_t pw_chains(int32_t simd, int32_t order, int64_t at_once, int64_t fmas, int64_t rows, int64_t distance, const double *c,
                  double *y)
{
    const int64_t n = order == chains_source ? 1 : at_once;
#define RUN(width) pw_chain_##width##_run(n, fmas, rows, distance, c, y)
    if (simd != PW_SIMD_COMPILER) {
        PW_RETURN_OF_WIDTH(simd, RUN)
        return 1;
    }
    if (order == chains_interleaved)
        pw_chains_interleaved(fmas, rows, c, y - distance * chains_row, y);
    else
        pw_chains_source(fmas, rows, distance, c, y - distance * chains_row);
    return 0;
}
