/* Loops in C, and with PW_MATH_VECTORS explicit vectors. No math.h, because it declares the vector library to GCC only
 * under -ffast-math, which would also change the arithmetic; so it is declared here. LLVM uses its option -fveclib. */
#include "math_functions.h"
#include "pw_vector.h"

#include <features.h>

/* libmvec has exp, log, sin, cos and pow since glibc 2.22, the others since 2.35, on x86-64. */
#if defined(PW_MATH_VECTORS) && defined(__x86_64__) && defined(__AVX2__) && defined(__GLIBC__)
#if __GLIBC_PREREQ(2, 35)
#define VECTOR_CALLS
#endif
#endif
#if defined(VECTOR_CALLS) && !defined(__clang__)
#define KNOWN_AS_VECTOR __attribute__((simd("notinbranch"), const))
#else
#define KNOWN_AS_VECTOR
#endif

/* Functions with vectors in both libraries, of one and of two arguments. */
#define EACH_OF_ONE(DO) DO(exp) DO(log) DO(sin) DO(cos) DO(tan) DO(cbrt) DO(erf) DO(atan) DO(exp10) DO(log10)
#define EACH_OF_TWO(DO) DO(pow) DO(atan2)
#define DECLARE(name)                                                                                                           \
    KNOWN_AS_VECTOR double name(double);                                                                                        \
    KNOWN_AS_VECTOR float name##f(float);
EACH_OF_ONE(DECLARE)
#define DECLARE_OF_TWO(name)                                                                                                    \
    KNOWN_AS_VECTOR double name(double, double);                                                                                \
    KNOWN_AS_VECTOR float name##f(float, float);
EACH_OF_TWO(DECLARE_OF_TWO)

void pw_math_fortran_fp64(int32_t function, int64_t n, const double *x, const double *z, double *y);
void pw_math_fortran_fp32(int32_t function, int64_t n, const float *x, const float *z, float *y);

/* LLVM would interleave four vector calls and keep their arguments and results on the stack, which takes 5 % longer. */
#if defined(__clang__)
#define CALL_AFTER_CALL _Pragma("clang loop interleave(disable)")
#else
#define CALL_AFTER_CALL
#endif

#define LOOP(name, ...)                                                                                                         \
    case math_##name:                                                                                                           \
        CALL_AFTER_CALL                                                                                                         \
        for (int64_t i = 0; i < n; i++) y[i] = __VA_ARGS__;                                                                     \
        return math_ok;
#define LOOP_FP64(name) LOOP(name, name(x[i]))
#define LOOP_FP32(name) LOOP(name, name##f(x[i]))
#define LOOP_OF_TWO_FP64(name) LOOP(name, name(x[i], z[i]))
#define LOOP_OF_TWO_FP32(name) LOOP(name, name##f(x[i], z[i]))
/* The remainder and roundings, by the compiler's names. */
#define ROUNDINGS(type, f)                                                                                                      \
    LOOP(mod, __builtin_fmod##f(x[i], z[i]))                                                                                    \
    LOOP(int, (type)(int32_t)x[i])                                                                                              \
    LOOP(nint, (type)__builtin_lround##f(x[i]))                                                                                 \
    LOOP(aint, __builtin_trunc##f(x[i]))                                                                                        \
    LOOP(anint, __builtin_round##f(x[i]))

static int32_t c_fp64(int32_t function, int64_t n, const double *restrict x, const double *restrict z, double *restrict y)
{
    switch (function) {
        EACH_OF_ONE(LOOP_FP64)
        EACH_OF_TWO(LOOP_OF_TWO_FP64)
        LOOP(sqrt, __builtin_sqrt(x[i]))
        ROUNDINGS(double, )
    default: return math_none;
    }
}

static int32_t c_fp32(int32_t function, int64_t n, const float *restrict x, const float *restrict z, float *restrict y)
{
    switch (function) {
        EACH_OF_ONE(LOOP_FP32)
        EACH_OF_TWO(LOOP_OF_TWO_FP32)
        LOOP(sqrt, __builtin_sqrtf(x[i]))
        ROUNDINGS(float, f)
    default: return math_none;
    }
}

#if defined(VECTOR_CALLS)
/* The names of the vector ABI for 256 bits (AVX2), of libmvec, and of SLEEF in libsleefgnuabi. */
typedef double vector_fp64 __attribute__((vector_size(32)));
typedef float vector_fp32 __attribute__((vector_size(32)));
typedef double memory_fp64 __attribute__((vector_size(32), aligned(8), may_alias));
typedef float memory_fp32 __attribute__((vector_size(32), aligned(4), may_alias));
#define DECLARE_VECTORS(name)                                                                                                   \
    vector_fp64 _ZGVdN4v_##name(vector_fp64);                                                                                   \
    vector_fp32 _ZGVdN8v_##name##f(vector_fp32);
EACH_OF_ONE(DECLARE_VECTORS)
#define DECLARE_VECTORS_OF_TWO(name)                                                                                            \
    vector_fp64 _ZGVdN4vv_##name(vector_fp64, vector_fp64);                                                                     \
    vector_fp32 _ZGVdN8vv_##name##f(vector_fp32, vector_fp32);
EACH_OF_TWO(DECLARE_VECTORS_OF_TWO)

/* The instruction, which needs no library. */
#if defined(__clang__)
#define SQRT_FP64 __builtin_elementwise_sqrt
#define SQRT_FP32 __builtin_elementwise_sqrt
#else
#define SQRT_FP64 _mm256_sqrt_pd
#define SQRT_FP32 _mm256_sqrt_ps
#endif

#define VECTORS(type, lanes, name, ...)                                                                                         \
    case math_##name:                                                                                                           \
        for (int64_t i = 0; i < n; i += lanes) *(memory_##type *)(y + i) = __VA_ARGS__;                                         \
        return math_ok;
#define VECTORS_FP64(name) VECTORS(fp64, 4, name, _ZGVdN4v_##name(*(const memory_fp64 *)(x + i)))
#define VECTORS_FP32(name) VECTORS(fp32, 8, name, _ZGVdN8v_##name##f(*(const memory_fp32 *)(x + i)))
#define VECTORS_OF_TWO_FP64(name)                                                                                               \
    VECTORS(fp64, 4, name, _ZGVdN4vv_##name(*(const memory_fp64 *)(x + i), *(const memory_fp64 *)(z + i)))
#define VECTORS_OF_TWO_FP32(name)                                                                                               \
    VECTORS(fp32, 8, name, _ZGVdN8vv_##name##f(*(const memory_fp32 *)(x + i), *(const memory_fp32 *)(z + i)))

static int32_t direct_fp64(int32_t function, int64_t n, const double *restrict x, const double *restrict z, double *restrict y)
{
    switch (function) {
        EACH_OF_ONE(VECTORS_FP64)
        EACH_OF_TWO(VECTORS_OF_TWO_FP64)
        VECTORS(fp64, 4, sqrt, SQRT_FP64(*(const memory_fp64 *)(x + i)))
    default: return math_none;
    }
}

static int32_t direct_fp32(int32_t function, int64_t n, const float *restrict x, const float *restrict z, float *restrict y)
{
    switch (function) {
        EACH_OF_ONE(VECTORS_FP32)
        EACH_OF_TWO(VECTORS_OF_TWO_FP32)
        VECTORS(fp32, 8, sqrt, SQRT_FP32(*(const memory_fp32 *)(x + i)))
    default: return math_none;
    }
}
#elif defined(PW_MATH_MASSV)
/* IBM's MASSV has one call for all arguments (MASS for Linux, massv.h). */
#define EACH_OF_MASSV(DO) DO(exp) DO(log) DO(sin) DO(cos) DO(tan) DO(sqrt) DO(cbrt) DO(log10)
#define DECLARE_MASSV(name)                                                                                                     \
    void v##name(double *y, const double *x, const int *n);                                                                     \
    void vs##name(float *y, const float *x, const int *n);
EACH_OF_MASSV(DECLARE_MASSV)
#define DECLARE_MASSV_OF_TWO(name)                                                                                              \
    void v##name(double *y, const double *x, const double *z, const int *n);                                                    \
    void vs##name(float *y, const float *x, const float *z, const int *n);
EACH_OF_TWO(DECLARE_MASSV_OF_TWO)
#define MASSV(name, call, ...)                                                                                                  \
    case math_##name: call##name(y, __VA_ARGS__, &count); return math_ok;
#define MASSV_FP64(name) MASSV(name, v, x)
#define MASSV_FP32(name) MASSV(name, vs, x)
#define MASSV_OF_TWO_FP64(name) MASSV(name, v, x, z)
#define MASSV_OF_TWO_FP32(name) MASSV(name, vs, x, z)

static int32_t direct_fp64(int32_t function, int64_t n, const double *x, const double *z, double *y)
{
    const int count = (int)n;
    switch (function) {
        EACH_OF_MASSV(MASSV_FP64)
        EACH_OF_TWO(MASSV_OF_TWO_FP64)
    default: return math_none;
    }
}

static int32_t direct_fp32(int32_t function, int64_t n, const float *x, const float *z, float *y)
{
    const int count = (int)n;
    switch (function) {
        EACH_OF_MASSV(MASSV_FP32)
        EACH_OF_TWO(MASSV_OF_TWO_FP32)
    default: return math_none;
    }
}
#else
#define direct_fp64(function, n, x, z, y) math_none
#define direct_fp32(function, n, x, z, y) math_none
#endif

int32_t pw_math(int32_t function, int32_t type, int32_t call, int64_t n, const void *x, const void *z, void *y)
{
    if (call == math_direct) return type == math_fp64 ? direct_fp64(function, n, x, z, y) : direct_fp32(function, n, x, z, y);
    if (call == math_c) return type == math_fp64 ? c_fp64(function, n, x, z, y) : c_fp32(function, n, x, z, y);
    if (type == math_fp64)
        pw_math_fortran_fp64(function, n, x, z, y);
    else
        pw_math_fortran_fp32(function, n, x, z, y);
    return math_ok;
}
