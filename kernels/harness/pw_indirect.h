/* The timed code of a kernel of indirect access; its driver is pw_indirect.f90.
 *
 * PagewiseEquation.cmake writes a kernel.c that includes this file, and defines from the equation in kernel.yaml:
 *   PW_SCATTERS   whether a is addressed through the indices c
 *   PW_GATHERS    whether b is
 *   PW_UPDATES    whether a + s*b is stored instead of b
 *   PW_PAIRS      whether b + s*d is, with d addressed like b
 * The macros PW_PREFETCH_... and PW_LOOP_... set the build's variant. */
#ifndef PAGEWISE_INDIRECT_H
#define PAGEWISE_INDIRECT_H

#include "pw_indirect_call.h"
#include "pw_widths.h"

#if defined(PW_LOOP_COMPILER)

/* The plain Fortran loop, and the same in C for fp32. Indices are a permutation where they are stored through. */
#if PW_PAIRS
void pw_loop(int64_t n, double *a, const double *b, const int32_t *c, double s, const double *d);
#define PW_MORE , d
#else
void pw_loop(int64_t n, double *a, const double *b, const int32_t *c, double s);
#define PW_MORE
#endif
#if defined(__clang__)
#define PW_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define PW_INDEPENDENT _Pragma("GCC ivdep")
#else
#define PW_INDEPENDENT
#endif

static void pw_loop_fp32(int64_t n, float *restrict a, const float *restrict b, const float *restrict d, const int32_t *restrict c,
                         float s)
{
    PW_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        float *const to = a + (PW_SCATTERS ? c[i] - 1 : i);
        const float from = b[PW_GATHERS ? c[i] - 1 : i];
        *to = PW_UPDATES ? *to + s * from : PW_PAIRS ? from + s * d[PW_GATHERS ? c[i] - 1 : i] : from;
    }
}

void pw_indirect_run(int32_t type, int64_t n, void *a, const void *b, const void *d, const int32_t *c, double s,
                     const struct pw_indirect_tuning *tuning)
{
    (void)d, (void)tuning;
    if (type == pw_indirect_fp32)
        pw_loop_fp32(n, a, b, d, c, (float)s);
    else
        pw_loop(n, a, b, c, s PW_MORE);
}

#else

/* Elements per iteration of every variant: enough to make the loop's overhead small. */
enum { pw_group = 8 };

#if defined(PW_PREFETCH_SOFTWARE) && defined(__ARM_FEATURE_SVE)
#include <arm_sve.h>

/* What the group of indices at c addresses in an array of elements of 8 or 4 bytes: an instruction for as many as a vector has. */
#define PW_PREFETCH_GROUP(name, kind)                                                  \
    PW_INLINE void name(const void *array, const int32_t *c, size_t bytes)             \
    {                                                                                  \
        for (int64_t k = 0; bytes == 8 && k < pw_group; k += (int64_t)svcntd()) {      \
            const svbool_t these = svwhilelt_b64_s64(k, pw_group);                     \
            const svint64_t at = svsub_n_s64_x(these, svld1sw_s64(these, c + k), 1);   \
            svprfd_gather_s64index(these, array, at, kind);                            \
        }                                                                              \
        for (int64_t k = 0; bytes == 4 && k < pw_group; k += (int64_t)svcntw()) {      \
            const svbool_t these = svwhilelt_b32_s64(k, pw_group);                     \
            const svint32_t at = svsub_n_s32_x(these, svld1_s32(these, c + k), 1);     \
            svprfw_gather_s32index(these, array, at, kind);                            \
        }                                                                              \
    }
PW_PREFETCH_GROUP(pw_prefetch_group_read, SV_PLDL1KEEP)
PW_PREFETCH_GROUP(pw_prefetch_group_write, SV_PSTL1KEEP)
#endif

#define PW_OWN_OF(type, label) PW_OWN_OF_(type, label)
#define PW_OWN_OF_(type, label) pw_##type##_##label
#define PW_TYPE fp64
#define PW_T double
#include "pw_indirect_loop.h"
#define PW_TYPE fp32
#define PW_T float
#include "pw_indirect_loop.h"

void pw_indirect_run(int32_t type, int64_t n, void *a, const void *b, const void *d, const int32_t *c, double s,
                     const struct pw_indirect_tuning *tuning)
{
    if (type == pw_indirect_fp32)
        pw_fp32_run(n, a, b, d, c, (float)s, tuning);
    else
        pw_fp64_run(n, a, b, d, c, s, tuning);
}

#endif
#endif
