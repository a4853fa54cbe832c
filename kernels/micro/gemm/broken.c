/* A call of BLAS that skips the last column: validation must detect it. */
#define pw_gemm_call pw_gemm_call_short
#include "kernel.c"
#undef pw_gemm_call

#include "pw_broken.h"

void pw_gemm_call(int32_t type, int64_t n, int64_t columns, int64_t stride, double alpha, const void *a, const void *b, void *c)
{
    pw_gemm_call_short(type, n, columns - 1, stride, alpha, a, b, c);
    pw_spoil(c, is_single(type) ? sizeof(float) : sizeof(double));
}
