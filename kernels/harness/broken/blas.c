/* A call of BLAS that skips the last column: validation must detect it. */
#define pw_gemm_call pw_gemm_call_short
#include "kernel.c"
#undef pw_gemm_call

#include "pw_broken.h"

void pw_gemm_call(int64_t n, int64_t columns, int64_t stride, double alpha, const PW_ELEMENT *a, const PW_ELEMENT *b,
                  PW_ELEMENT *c)
{
    pw_gemm_call_short(n, columns - 1, stride, alpha, a, b, c);
    pw_spoil(c, _Generic(*c, float: 4, float _Complex: 4, default: 8));
}
