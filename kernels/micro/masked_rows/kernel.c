/* Rows by masked vectors, and without vectors; the compiled loops are in kernel.f90. */
#include "masked_rows.h"
#include "pw_widths.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_SVE)
#include <arm_sve.h>
#endif

void pw_masked_rows_plain(int64_t length, int64_t rows, int64_t leading, double *y, const double *x);

/* Element by element; opaque, so that it stays scalar. */
static void scalar_rows(int64_t length, int64_t rows, int64_t leading, double *y, const double *x)
{
    for (int64_t j = 0; j < rows; j++, y += leading, x += leading)
        for (int64_t i = 0; i < length; i++) {
            double sum = y[i] + x[i];
            PW_OPAQUE(sum);
            y[i] = sum;
        }
}

#if defined(__AVX512F__)
/* A row is one vector. */
PW_WIDE static void rows_512(int64_t length, int64_t rows, int64_t leading, double *y, const double *x)
{
    const __mmask8 mask = (__mmask8)((1U << length) - 1U);
    for (int64_t j = 0; j < rows; j++, y += leading, x += leading)
        _mm512_mask_storeu_pd(y, mask, _mm512_add_pd(_mm512_maskz_loadu_pd(mask, y), _mm512_maskz_loadu_pd(mask, x)));
}
#endif

#if defined(__AVX__)
PW_INLINE void masked_256(__m256i mask, double *y, const double *x)
{
    _mm256_maskstore_pd(y, mask, _mm256_add_pd(_mm256_maskload_pd(y, mask), _mm256_maskload_pd(x, mask)));
}

/* A row is one masked vector; or a whole one followed by a masked one. */
static void rows_256(int64_t length, int64_t rows, int64_t leading, double *y, const double *x)
{
    const int64_t masked = length > 4 ? length - 4 : length;
    const __m256i mask = _mm256_setr_epi64x(-1, masked > 1 ? -1 : 0, masked > 2 ? -1 : 0, masked > 3 ? -1 : 0);
    if (length > 4)
        for (int64_t j = 0; j < rows; j++, y += leading, x += leading) {
            _mm256_storeu_pd(y, _mm256_add_pd(_mm256_loadu_pd(y), _mm256_loadu_pd(x)));
            masked_256(mask, y + 4, x + 4);
        }
    else
        for (int64_t j = 0; j < rows; j++, y += leading, x += leading) masked_256(mask, y, x);
}
#endif

#if defined(__ARM_FEATURE_SVE)
/* As many vectors as a row needs, the last one masked. */
static void rows_vla(int64_t length, int64_t rows, int64_t leading, double *y, const double *x)
{
    for (int64_t j = 0; j < rows; j++, y += leading, x += leading)
        for (int64_t i = 0; i < length; i += (int64_t)svcntd()) {
            const svbool_t mask = svwhilelt_b64_s64(i, length);
            svst1_f64(mask, y + i, svadd_f64_x(mask, svld1_f64(mask, y + i), svld1_f64(mask, x + i)));
        }
}
#endif

int32_t pw_masked_rows(int32_t simd, int64_t length, int64_t rows, int64_t leading, void *y, const void *x)
{
    switch (simd) {
    case PW_SIMD_COMPILER: return pw_masked_rows_plain(length, rows, leading, y, x), 0;
    case PW_SIMD_SCALAR: return scalar_rows(length, rows, leading, y, x), 0;
#if defined(__AVX__)
    case PW_SIMD_256: return rows_256(length, rows, leading, y, x), 0;
#endif
#if defined(__AVX512F__)
    case PW_SIMD_512: return rows_512(length, rows, leading, y, x), 0;
#endif
#if defined(__ARM_FEATURE_SVE)
    case PW_SIMD_VLA: return rows_vla(length, rows, leading, y, x), 0;
#endif
    default: return 1;
    }
}
