/* Leaves the last column of c unchanged: validation must detect it. */
#define pw_blocked_dgemm pw_whole_dgemm
#include "kernel.c"
#undef pw_blocked_dgemm

#include "pw_broken.h"

void pw_gemm_by_loops(int64_t way, int64_t n, int64_t columns, int64_t stride, double alpha, const double *a, const double *b,
                      double *c)
{
    (void)way, (void)n, (void)columns, (void)stride, (void)alpha, (void)a, (void)b, (void)c;
}

void pw_gemm_by_tile_loops(const int64_t tile_size[2], int64_t rows, int64_t columns, int64_t depth, double alpha,
                           const double *block, const double *panel, int64_t stride, double *c)
{
    (void)tile_size, (void)rows, (void)columns, (void)depth, (void)alpha, (void)block, (void)panel, (void)stride, (void)c;
}

void pw_blocked_dgemm(const struct pw_gemm_call *call)
{
    struct pw_gemm_call most = *call;
    most.columns--;
    pw_whole_dgemm(&most);
    pw_spoil(call->c, sizeof *call->c);
}
