/* Skips the last result: validation must detect it. */
#include "math_functions.h"
#include "pw_broken.h"

#include <math.h>

int32_t pw_math(int32_t function, int32_t type, int32_t call, int64_t n, const void *x, const void *z, void *y)
{
    (void)z;
    if (function != math_exp || type != math_fp64 || call != math_fortran) return math_none;
    for (int64_t i = 0; i < n - 1; i++) ((double *)y)[i] = exp(((const double *)x)[i]);
    if (n > 0) pw_spoil(y, sizeof(double));
    return math_ok;
}
