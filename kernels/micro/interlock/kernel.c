/* One access after the other, in this order: what a load waits for is what is measured. */
#include "interlock.h"
#include "pw_widths.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_SVE)
#include <arm_sve.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

/* The next access is not moved before this one, nor merged with it. */
#define PW_IN_ORDER __asm__ volatile("" ::: "memory")

typedef int16_t __attribute__((may_alias)) half;
typedef int32_t __attribute__((may_alias, aligned(2))) word;

static void halves(int64_t first, int64_t last, int32_t sign, half *y, const half *x)
{
    for (int64_t i = first; i < last; i++) y[i] = (half)(y[i] + sign * x[i]);
}

#if defined(__ARM_FEATURE_SVE)
static void contiguous(int64_t n, int64_t offset, int32_t sign, half *y, const half *x)
{
    const svbool_t all = svptrue_b16();
    const int64_t step = (int64_t)svcnth();
    int64_t i = offset / 2;
    halves(0, i, sign, y, x);
    PW_NO_UNROLL
    for (; i + step <= 2 * n; i += step) {
        const svint16_t more = svmul_n_s16_x(all, svld1_s16(all, x + i), (int16_t)sign);
        svst1_s16(all, y + i, svadd_s16_x(all, svld1_s16(all, y + i), more));
        PW_IN_ORDER;
    }
    halves(i, 2 * n, sign, y, x);
}
#else
enum { vector_halves = PW_VECTOR_BYTES >= 16 ? PW_VECTOR_BYTES / 2 : 8 };
typedef half vector __attribute__((vector_size(2 * vector_halves), aligned(2), may_alias));

static void contiguous(int64_t n, int64_t offset, int32_t sign, half *y, const half *x)
{
    const half factor = (half)sign;
    int64_t i = offset / 2;
    halves(0, i, sign, y, x);
    PW_NO_UNROLL
    for (; i + vector_halves <= 2 * n; i += vector_halves) {
        *(vector *)(y + i) = *(const vector *)(y + i) + *(const vector *)(x + i) * factor;
        PW_IN_ORDER;
    }
    halves(i, 2 * n, sign, y, x);
}
#endif

#if defined(__ARM_FEATURE_SVE)
/* Every (block / lanes)-th number of a block, from number `part` on. */
static void gather(int32_t sign, int64_t lanes, int64_t part, int32_t *y, const int32_t *x)
{
    const svbool_t all = svptrue_b32();
    const svint32_t index = svindex_s32((int32_t)part, (int32_t)(interlock_block / lanes));
    const svint32_t more = svmul_n_s32_x(all, svld1_gather_s32index_s32(all, x, index), sign);
    const svint32_t sum = svadd_s32_x(all, svld1_gather_s32index_s32(all, y, index), more);
    svst1_scatter_s32index_s32(all, y, index, sum);
    PW_IN_ORDER;
}

static int64_t lanes_of_gather(void)
{
    return (int64_t)svcntw();
}
#elif defined(__AVX2__)
static void gather(int32_t sign, int64_t lanes, int64_t part, int32_t *y, const int32_t *x)
{
    const __m256i first = _mm256_set1_epi32((int32_t)part), apart = _mm256_set1_epi32((int32_t)(interlock_block / lanes));
    const __m256i index = _mm256_add_epi32(first, _mm256_mullo_epi32(apart, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
    const __m256i more = _mm256_mullo_epi32(_mm256_i32gather_epi32(x, index, 4), _mm256_set1_epi32(sign));
    const __m256i sum = _mm256_add_epi32(_mm256_i32gather_epi32(y, index, 4), more);
#if defined(__AVX512VL__)
    _mm256_i32scatter_epi32(y, index, sum, 4);
#else
    int32_t at[8], value[8];
    _mm256_storeu_si256((__m256i *)at, index);
    _mm256_storeu_si256((__m256i *)value, sum);
    PW_UNROLL
    for (int k = 0; k < 8; k++) ((word *)y)[at[k]] = value[k];
#endif
    PW_IN_ORDER;
}

static int64_t lanes_of_gather(void)
{
    return 8;
}
#endif

#if defined(__ARM_FEATURE_SVE) || defined(__AVX2__)
static int32_t gathers(int32_t way, int64_t n, int32_t sign, int32_t *y, const int32_t *x)
{
    const int64_t lanes = lanes_of_gather(), parts = interlock_block / lanes;
    if (lanes > interlock_block) return 1;
    if (way == interlock_gather)
        for (int64_t i = 0; i < n; i += interlock_block)
            for (int64_t part = 0; part < parts; part++) gather(sign, lanes, part, y + i, x + i);
    else
        for (int64_t part = 0; part < parts; part++)
            for (int64_t i = 0; i < n; i += interlock_block) gather(sign, lanes, part, y + i, x + i);
    return 0;
}
#else
static int32_t gathers(int32_t way, int64_t n, int32_t sign, int32_t *y, const int32_t *x)
{
    (void)way, (void)n, (void)sign, (void)y, (void)x;
    return 1;
}
#endif

/* Whole blocks hold a whole number of pairs of vectors, up to 1024 bits. */
#if defined(__ARM_FEATURE_SVE)
static int32_t structures(int32_t way, int64_t n, int32_t sign, int32_t *y, const int32_t *x)
{
    const svbool_t words = svptrue_b32(), all = svptrue_b16();
    if (interlock_block % (2 * (int64_t)svcntw()) != 0) return 1;
    if (way == interlock_structure)
        for (int64_t i = 0; i < n; i += 2 * (int64_t)svcntw()) {
            const svint32x2_t a = svld2_s32(words, y + i), b = svld2_s32(words, x + i);
            const svint32_t even = svmla_n_s32_x(words, svget2_s32(a, 0), svget2_s32(b, 0), sign);
            const svint32_t odd = svmla_n_s32_x(words, svget2_s32(a, 1), svget2_s32(b, 1), sign);
            svst2_s32(words, y + i, svcreate2_s32(even, odd));
            PW_IN_ORDER;
        }
    else
        for (int64_t i = 0; i < n; i += (int64_t)svcnth()) {
            half *at = (half *)(y + i);
            const svint16x2_t a = svld2_s16(all, at), b = svld2_s16(all, (const half *)(x + i));
            const svint16_t even = svmla_n_s16_x(all, svget2_s16(a, 0), svget2_s16(b, 0), (int16_t)sign);
            const svint16_t odd = svmla_n_s16_x(all, svget2_s16(a, 1), svget2_s16(b, 1), (int16_t)sign);
            svst2_s16(all, at, svcreate2_s16(even, odd));
            PW_IN_ORDER;
        }
    return 0;
}
#elif defined(__ARM_NEON)
static int32_t structures(int32_t way, int64_t n, int32_t sign, int32_t *y, const int32_t *x)
{
    for (int64_t i = 0; i < n; i += 8) {
        if (way == interlock_structure) {
            int32x4x2_t a = vld2q_s32(y + i);
            const int32x4x2_t b = vld2q_s32(x + i);
            for (int k = 0; k < 2; k++) a.val[k] = vmlaq_n_s32(a.val[k], b.val[k], sign);
            vst2q_s32(y + i, a);
        } else {
            int16x8x2_t a = vld2q_s16((half *)(y + i));
            const int16x8x2_t b = vld2q_s16((const half *)(x + i));
            for (int k = 0; k < 2; k++) a.val[k] = vmlaq_n_s16(a.val[k], b.val[k], (int16_t)sign);
            vst2q_s16((half *)(y + i), a);
        }
        PW_IN_ORDER;
    }
    return 0;
}
#else
static int32_t structures(int32_t way, int64_t n, int32_t sign, int32_t *y, const int32_t *x)
{
    (void)way, (void)n, (void)sign, (void)y, (void)x;
    return 1;
}
#endif

int32_t pw_interlock(int32_t way, int64_t n, int64_t offset, int32_t sign, void *y, const void *x)
{
    void *const shifted = (char *)y + offset;
    const void *const x_shifted = (const char *)x + offset;
    switch (way) {
    case interlock_contiguous: return contiguous(n, offset, sign, y, x), 0;
    case interlock_gather:
    case interlock_gather_apart: return gathers(way, n, sign, shifted, x_shifted);
    default: return structures(way, n, sign, shifted, x_shifted);
    }
}
