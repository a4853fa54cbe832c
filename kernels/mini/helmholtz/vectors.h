/* Four doubles at a time, the same for GCC and Clang: elementary functions, choices, transposition. */
#ifndef PW_HELMHOLTZ_VECTORS_H
#define PW_HELMHOLTZ_VECTORS_H

#include <stdint.h>

#if defined(__AVX__) && !defined(__clang__)
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))

enum { lanes = 4 };
typedef double v4 __attribute__((vector_size(32)));
typedef double v4_unaligned __attribute__((vector_size(32), aligned(8)));
typedef int64_t m4 __attribute__((vector_size(32)));
typedef int64_t m4_unaligned __attribute__((vector_size(32), aligned(8)));

INLINE v4 load(const double *p)
{
    return *(const v4_unaligned *)p;
}

INLINE void store(double *p, v4 x)
{
    *(v4_unaligned *)p = x;
}

INLINE v4 splat(double x)
{
    return (v4){x, x, x, x};
}

INLINE v4 choose(m4 mask, v4 yes, v4 no)
{
    return (v4)((mask & (m4)yes) | (~mask & (m4)no));
}

INLINE v4 larger(v4 a, v4 b)
{
    return choose(a > b, a, b);
}

INLINE v4 smaller(v4 a, v4 b)
{
    return choose(a < b, a, b);
}

INLINE v4 distance(v4 a, v4 b)
{
    return larger(a - b, b - a);
}

INLINE int any(m4 mask)
{
    return (mask[0] | mask[1] | mask[2] | mask[3]) != 0;
}

/* 1.5 * 2^52: added to a number below 2^51, it leaves the nearest integer in the last bits. */
static const double shifter = 6755399441055744.0;

INLINE v4 nearest(v4 x)
{
    return (x + shifter) - shifter;
}

/* Store the integers represented by doubles to memory. */
INLINE void store_integers(int64_t *p, v4 x)
{
    *(m4_unaligned *)p = (m4)(x + shifter) - (m4)splat(shifter);
}

INLINE v4 square_root(v4 x)
{
#if defined(__clang__)
    return __builtin_elementwise_sqrt(x);
#elif defined(__AVX__)
    return (v4)_mm256_sqrt_pd((__m256d)x);
#else
    v4 y;
    for (int l = 0; l < lanes; l++) y[l] = __builtin_sqrt(x[l]);
    return y;
#endif
}

/* exp(x): x = k ln 2 + r, |r| <= ln(2)/2, by the series of exp(r) to the 13th power (the next term is 4e-18); the argument's
   reduction in two parts after Cody and Waite 1980. Relative error below 3e-16; below -708 a number near 0, no subnormals. */
INLINE v4 exponential(v4 x)
{
    x = smaller(larger(x, splat(-708.0)), splat(709.0));
    v4 shifted = x * 1.4426950408889634 + shifter;
    v4 k = shifted - shifter;
    v4 r = x - k * 0.693147180369123816490;
    r = r - k * 1.90821492927058770002e-10;
    /* In pairs, after Estrin: to shorten the dependency chain. */
    v4 r2 = r * r, r4 = r2 * r2;
    v4 low = (1.0 + r) + r2 * (0.5 + r * (1.0 / 6.0));
    v4 middle = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0));
    v4 high = (1.0 / 40320.0 + r * (1.0 / 362880.0)) + r2 * (1.0 / 3628800.0 + r * (1.0 / 39916800.0));
    v4 top = 1.0 / 479001600.0 + r * (1.0 / 6227020800.0);
    v4 p = low + r4 * (middle + r4 * (high + r4 * top));
    return (v4)((m4)p + ((m4)shifted << 52));
}

/* ln(x) of normal x > 0: x = 2^k m, sqrt(1/2) <= m < sqrt(2), z = (m - 1)/(m + 1), ln(m) = 2 (z + z^3/3 + z^5/5 + ...) up to
   z^21 (the next term is 2e-19). */
INLINE v4 logarithm(v4 x)
{
    const int64_t root = 0x3fe6a09e667f3bcd; /* the bits of sqrt(1/2) */
    m4 up = (m4)x - root;
    m4 power = up >> 52;
    v4 m = (v4)((m4)x - (power << 52));
    v4 k = (v4)(power + (m4)splat(shifter)) - shifter;
    v4 z = (m - 1.0) / (m + 1.0), w = z * z;
    v4 w2 = w * w, w4 = w2 * w2;
    v4 low = (2.0 / 3.0 + w * (2.0 / 5.0)) + w2 * (2.0 / 7.0 + w * (2.0 / 9.0));
    v4 middle = (2.0 / 11.0 + w * (2.0 / 13.0)) + w2 * (2.0 / 15.0 + w * (2.0 / 17.0));
    v4 high = 2.0 / 19.0 + w * (2.0 / 21.0);
    v4 p = low + w4 * (middle + w4 * high);
    return k * 0.693147180369123816490 + (2.0 * z + ((w * z) * p + k * 1.90821492927058770002e-10));
}

#if defined(__clang__)
#define SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, (m4){i, j, k, l})
#endif

/* Four values each of four zones to four zones each of four values. */
INLINE void transpose(v4 a, v4 b, v4 c, v4 d, v4 *out)
{
    v4 ab0 = SHUFFLE(a, b, 0, 4, 2, 6), ab1 = SHUFFLE(a, b, 1, 5, 3, 7);
    v4 cd0 = SHUFFLE(c, d, 0, 4, 2, 6), cd1 = SHUFFLE(c, d, 1, 5, 3, 7);
    out[0] = SHUFFLE(ab0, cd0, 0, 1, 4, 5);
    out[1] = SHUFFLE(ab1, cd1, 0, 1, 4, 5);
    out[2] = SHUFFLE(ab0, cd0, 2, 3, 6, 7);
    out[3] = SHUFFLE(ab1, cd1, 2, 3, 6, 7);
}

#endif
