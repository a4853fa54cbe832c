/* Functions of many arguments at once; driver.f90 declares the same numbers. */
#ifndef PAGEWISE_MATH_FUNCTIONS_H
#define PAGEWISE_MATH_FUNCTIONS_H

#include <stdint.h>

/* In the order of --function. */
enum {
    math_exp = 1, math_log, math_sin, math_cos, math_tan, math_pow, math_sqrt, math_cbrt, math_erf, math_atan, math_atan2,
    math_exp10, math_log10, math_mod, math_int, math_nint, math_aint, math_anint
};

enum { math_fp64 = 1, math_fp32 = 2 };

/* Kind of call: a loop in Fortran, a loop in C, or explicit calls of the library's vector functions. */
enum { math_fortran = 1, math_c = 2, math_direct = 3 };

enum { math_ok = 0, math_none = 1 };

/* y(i) = f(x(i)), or that of x(i) and z(i), for i = 1..n; n is a multiple of 16 for explicit calls. Returns math_none if the build
 * does not support the call. */
int32_t pw_math(int32_t function, int32_t type, int32_t call, int64_t n, const void *x, const void *z, void *y);

/* Arguments first to first+n-1 (from 0) of a function, spread evenly over its range; see reference.c. */
void pw_math_arguments(int32_t function, int32_t type, int64_t first, int64_t n, void *x, void *z);

/* The largest error of y among n, in units in the last place of the type, against a more precise reference. */
double pw_math_error(int32_t function, int32_t type, int64_t n, const void *x, const void *z, const void *y);

/* Bits of the reference's precision: 113 is quad. */
int32_t pw_math_reference_bits(void);

#endif
