/* Arguments, and reference results of the C library in quad precision, whose own errors, at most some units in the
 * 113th bit, are negligible in the 53rd. On x86-64 and POWER these functions end in f128 (glibc 2.26 and later); elsewhere
 * long double is quad. Both compilers can call them without any compiler runtime. */
#include "math_functions.h"

#include <features.h>
#include <float.h>
#include <math.h>

#if (defined(__x86_64__) || defined(__powerpc64__)) && defined(__GLIBC__)
__extension__ typedef __float128 quad;
enum { bits = 113 };
#define QUAD(name) name##f128
quad expf128(quad);
quad logf128(quad);
quad sinf128(quad);
quad cosf128(quad);
quad tanf128(quad);
quad powf128(quad, quad);
quad sqrtf128(quad);
quad cbrtf128(quad);
quad erff128(quad);
quad atanf128(quad);
quad atan2f128(quad, quad);
quad exp10f128(quad);
quad log10f128(quad);
quad fmodf128(quad, quad);
quad truncf128(quad);
quad roundf128(quad);
#else
typedef long double quad;
enum { bits = LDBL_MANT_DIG };
#define QUAD(name) name##l
quad exp10l(quad); /* a GNU extension */
#endif

int32_t pw_math_reference_bits(void)
{
    return bits;
}

static quad reference(int32_t function, quad x, quad z)
{
    switch (function) {
    case math_exp: return QUAD(exp)(x);
    case math_log: return QUAD(log)(x);
    case math_sin: return QUAD(sin)(x);
    case math_cos: return QUAD(cos)(x);
    case math_tan: return QUAD(tan)(x);
    case math_pow: return QUAD(pow)(x, z);
    case math_sqrt: return QUAD(sqrt)(x);
    case math_cbrt: return QUAD(cbrt)(x);
    case math_erf: return QUAD(erf)(x);
    case math_atan: return QUAD(atan)(x);
    case math_atan2: return QUAD(atan2)(x, z);
    case math_exp10: return QUAD(exp10)(x);
    case math_log10: return QUAD(log10)(x);
    case math_mod: return QUAD(fmod)(x, z);
    case math_int:
    case math_aint: return QUAD(trunc)(x);
    default: return QUAD(round)(x); /* nint, anint */
    }
}

/* Ranges whose results are normal numbers of the type, covering most of them; for sin, cos, tan, atan and roundings the
 * ranges that codes use. `exponential`: x is the exponential of a number in the range. `second`: the second argument is
 * between -second and second. */
static const struct range {
    double low, high, second;
    int exponential;
} ranges[2][math_anint] = {
    {[math_exp - 1] = {-700, 700, 0, 0}, [math_log - 1] = {-690, 690, 0, 1}, [math_sin - 1] = {-100, 100, 0, 0},
     [math_cos - 1] = {-100, 100, 0, 0}, [math_tan - 1] = {-100, 100, 0, 0}, [math_pow - 1] = {-5, 5, 138, 1},
     [math_sqrt - 1] = {-690, 690, 0, 1}, [math_cbrt - 1] = {-690, 690, 0, 1}, [math_erf - 1] = {-6, 6, 0, 0},
     [math_atan - 1] = {-100, 100, 0, 0}, [math_atan2 - 1] = {-10, 10, 10, 0}, [math_exp10 - 1] = {-300, 300, 0, 0},
     [math_log10 - 1] = {-690, 690, 0, 1}, [math_mod - 1] = {-1e6, 1e6, 1e3, 0}, [math_int - 1] = {-1e6, 1e6, 0, 0},
     [math_nint - 1] = {-1e6, 1e6, 0, 0}, [math_aint - 1] = {-1e6, 1e6, 0, 0}, [math_anint - 1] = {-1e6, 1e6, 0, 0}},
    {[math_exp - 1] = {-85, 85, 0, 0}, [math_log - 1] = {-85, 85, 0, 1}, [math_sin - 1] = {-100, 100, 0, 0},
     [math_cos - 1] = {-100, 100, 0, 0}, [math_tan - 1] = {-100, 100, 0, 0}, [math_pow - 1] = {-5, 5, 17, 1},
     [math_sqrt - 1] = {-85, 85, 0, 1}, [math_cbrt - 1] = {-85, 85, 0, 1}, [math_erf - 1] = {-4, 4, 0, 0},
     [math_atan - 1] = {-100, 100, 0, 0}, [math_atan2 - 1] = {-10, 10, 10, 0}, [math_exp10 - 1] = {-37, 37, 0, 0},
     [math_log10 - 1] = {-85, 85, 0, 1}, [math_mod - 1] = {-1e4, 1e4, 1e3, 0}, [math_int - 1] = {-1e5, 1e5, 0, 0},
     [math_nint - 1] = {-1e5, 1e5, 0, 0}, [math_aint - 1] = {-1e5, 1e5, 0, 0}, [math_anint - 1] = {-1e5, 1e5, 0, 0}},
};

/* The fractional part of i times an irrational number: evenly spread and determined by i (Weyl 1916). */
static const double golden_section = 0.61803398874989485, root_of_2 = 0.41421356237309505;

static double spread(int64_t i, double irrational)
{
    const double product = (double)i * irrational;
    return product - floor(product);
}

void pw_math_arguments(int32_t function, int32_t type, int64_t first, int64_t n, void *x, void *z)
{
    const struct range range = ranges[type - 1][function - 1];
    for (int64_t k = 0; k < n; k++) {
        const double even = range.low + (range.high - range.low) * spread(first + k + 1, golden_section);
        const double argument = range.exponential ? exp(even) : even;
        const double second = range.second * (2 * spread(first + k + 1, root_of_2) - 1);
        if (type == math_fp64)
            ((double *)x)[k] = argument, ((double *)z)[k] = second;
        else
            ((float *)x)[k] = (float)argument, ((float *)z)[k] = (float)second;
    }
}

/* Units in the last place between a result and the exact one. Without powers of two that may be subnormal, because options
 * such as -Ofast make the processor replace those by zero. */
static double units(quad computed, quad exact, int digits)
{
    if (exact == 0) return computed == 0 ? 0 : HUGE_VAL;
    int exponent;
    const double significand = 2 * frexp((double)exact, &exponent);
    return fabs((double)((computed - exact) / exact) * significand) * ldexp(1.0, digits - 1);
}

double pw_math_error(int32_t function, int32_t type, int64_t n, const void *x, const void *z, const void *y)
{
    const int digits = type == math_fp64 ? DBL_MANT_DIG : FLT_MANT_DIG;
    double largest = 0;
    for (int64_t k = 0; k < n; k++) {
        quad exact, computed;
        if (type == math_fp64)
            exact = reference(function, ((const double *)x)[k], ((const double *)z)[k]), computed = ((const double *)y)[k];
        else
            exact = reference(function, ((const float *)x)[k], ((const float *)z)[k]), computed = ((const float *)y)[k];
        const double error = units(computed, exact, digits);
        if (!(error <= largest)) largest = isnan(error) ? HUGE_VAL : error;
    }
    return largest;
}
