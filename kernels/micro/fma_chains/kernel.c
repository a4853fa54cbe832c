/* The explicit widths; the compiled loops are in chains.f90.in. */
#include "chains.h"
#include "pw_peak.h"

void pw_chains_source(int64_t fmas, int64_t rows, int64_t distance, const double *c, double *y);
void pw_chains_interleaved(int64_t fmas, int64_t rows, const double *c, const double *x, double *y);

/* Written out, because GCC keeps a loop over an array of vectors, and the array in memory. */
#define EACH_CHAIN(DO, name, f)                                                                                                 \
    DO(name, 0, f) DO(name, 1, f) DO(name, 2, f) DO(name, 3, f) DO(name, 4, f) DO(name, 5, f) DO(name, 6, f) DO(name, 7, f)
#define TAKE(name, k, f) if (k < n) from[k] = name##_load(x + k * lanes), sum[k] = name##_every(c[fmas]);
#define PUT(name, k, f) if (k < n) name##_store(y + k * lanes, sum[k]);
#define ADVANCE(name, k, f)                                                                                                     \
    if (k < n) {                                                                                                                \
        sum[k] = name##_hide(name##_fma(from[k], sum[k], name##_every(c[f])));                                                  \
    }
#define STEP(name, f) if (f < fmas) { EACH_CHAIN(ADVANCE, name, f) }

/* The work on n vectors, one chain each, step by step for all. Sums are opaque in between, so that scalars stay scalar. */
#define DEFINE_ROWS(name, width_attribute)                                                                                      \
    PW_INLINE width_attribute void name##_rows(int n, int fmas, const double *c, const double *x, double *y)                    \
    {                                                                                                                           \
        const int64_t lanes = name##_lanes();                                                                                   \
        name##_vector from[8], sum[8];                                                                                          \
        EACH_CHAIN(TAKE, name, 0)                                                                                               \
        STEP(name, 8) STEP(name, 7) STEP(name, 6) STEP(name, 5) STEP(name, 4) STEP(name, 3) STEP(name, 2) STEP(name, 1)         \
        STEP(name, 0)                                                                                                           \
        EACH_CHAIN(PUT, name, 0)                                                                                                \
    }
/* All rows, n vectors at once. */
#define DEFINE_ALL(name, width_attribute)                                                                                       \
    PW_INLINE width_attribute void name##_all(int n, int fmas, int64_t rows, int64_t distance, const double *c, double *y)      \
    {                                                                                                                           \
        const int64_t lanes = name##_lanes(), all = rows * chains_row;                                                          \
        const double *x = y - distance * chains_row;                                                                            \
        int64_t i = 0;                                                                                                          \
        double own[chains_longest + 1];                                                                                         \
        for (int f = 0; f <= chains_longest; f++) own[f] = c[f];                                                                \
        for (; n > 1 && i + n * lanes <= all; i += n * lanes) name##_rows(n, fmas, own, x + i, y + i);                          \
        for (; i < all; i += lanes) name##_rows(1, fmas, own, x + i, y + i);                                                    \
    }
#define DEFINE_CHAINS(name, width_attribute)                                                                                    \
    DEFINE_ROWS(name, width_attribute)                                                                                          \
    DEFINE_ALL(name, width_attribute)                                                                                           \
    static width_attribute int32_t name##_chains(int64_t n, int64_t fmas, int64_t rows, int64_t distance, const double *c,      \
                                                 double *y)                                                                     \
    {                                                                                                                           \
        switch ((int)fmas + (chains_longest + 1) * (int)n) {                                                                    \
            LENGTHS(name, CASES)                                                                                                \
        }                                                                                                                       \
        return 0;                                                                                                               \
    }
#define CASE(name, f, n)                                                                                                        \
    case f + (chains_longest + 1) * n: name##_all(n, f, rows, distance, c, y); break;
#if PW_CHAINS_MOST == 8
#define CASES(name, f) CASE(name, f, 1) CASE(name, f, 2) CASE(name, f, 4) CASE(name, f, 8)
#else
#define CASES(name, f) CASE(name, f, 1) CASE(name, f, 2) CASE(name, f, 4)
#endif
#define LENGTHS(name, DO)                                                                                                       \
    DO(name, 1) DO(name, 2) DO(name, 3) DO(name, 4) DO(name, 5) DO(name, 6) DO(name, 7) DO(name, 8) DO(name, 9)

DEFINE_CHAINS(fp64_scalar, )
DEFINE_CHAINS(fp64_128, )
PW_IF_256(DEFINE_CHAINS(fp64_256, ))
PW_IF_512(DEFINE_CHAINS(fp64_512, PW_WIDE))

int64_t pw_chains_most(void)
{
    return PW_CHAINS_MOST;
}

int32_t pw_chains(int32_t simd, int32_t order, int64_t at_once, int64_t fmas, int64_t rows, int64_t distance, const double *c,
                  double *y)
{
    const int64_t n = order == chains_source ? 1 : at_once;
    switch (simd) {
    case PW_SIMD_COMPILER:
        if (order == chains_interleaved)
            pw_chains_interleaved(fmas, rows, c, y - distance * chains_row, y);
        else
            pw_chains_source(fmas, rows, distance, c, y - distance * chains_row);
        return 0;
    case PW_SIMD_SCALAR: return fp64_scalar_chains(n, fmas, rows, distance, c, y);
    case PW_SIMD_128: return fp64_128_chains(n, fmas, rows, distance, c, y);
        PW_IF_256(case PW_SIMD_256 : return fp64_256_chains(n, fmas, rows, distance, c, y);)
        PW_IF_512(case PW_SIMD_512 : return fp64_512_chains(n, fmas, rows, distance, c, y);)
    default: return 1;
    }
}
