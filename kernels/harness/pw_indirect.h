/* The timed code of a kernel of indirect access; its driver is pw_indirect.f90.
 *
 * PagewiseIndirect.cmake writes a kernel.c that includes this file, and defines from the equation in kernel.yaml:
 *   PW_SCATTERS   whether a is addressed through the indices c
 *   PW_GATHERS    whether b is
 *   PW_UPDATES    whether a + s*b is stored instead of b
 * The macros PW_PREFETCH_... and PW_LOOP_... set the build's variant. */
#ifndef PAGEWISE_INDIRECT_H
#define PAGEWISE_INDIRECT_H

#include "pw_widths.h"

/* n indices c, from 1, into a or b or both; what is not addressed through them has n elements. */
struct pw_indirect_tuning {
    int64_t ahead;  /* prefetch=software: distance in indices; block: the number of indices in a block */
    int64_t gather; /* prefetch=software: by SVE's gather prefetches */
};

void pw_indirect_run(int64_t n, double *a, const double *b, const int32_t *c, double s,
                     const struct pw_indirect_tuning *tuning);

#if defined(PW_LOOP_COMPILER)

/* The plain Fortran loop in loop.f90. */
void pw_loop(int64_t n, double *a, const double *b, const int32_t *c, double s);

void pw_indirect_run(int64_t n, double *a, const double *b, const int32_t *c, double s,
                     const struct pw_indirect_tuning *tuning)
{
    (void)tuning;
    pw_loop(n, a, b, c, s);
}

#else

/* Elements per iteration of every variant: enough to make the loop's overhead small. */
enum { pw_group = 8 };

/* Element number i, whose index is `at`, from 1. The barrier keeps compilers from vectorising, of which prefetches also keep
 * them: all explicit variants access element by element. */
PW_INLINE void pw_indirect_element(double *a, const double *b, int64_t at, double s, int64_t i)
{
    double *const to = a + (PW_SCATTERS ? at - 1 : i);
    const double from = b[PW_GATHERS ? at - 1 : i];
    *to = PW_UPDATES ? *to + s * from : from;
    __asm__ volatile("" ::: "memory");
}

PW_INLINE void pw_indirect_prefetch(const double *a, const double *b, int64_t at)
{
    if (PW_GATHERS) pw_prefetch_read(b + at - 1);
    if (PW_SCATTERS) pw_prefetch_write(a + at - 1);
}

PW_INLINE void pw_indirect_preload(const double *a, const double *b, int64_t at)
{
    if (PW_GATHERS) pw_preload(b + at - 1);
    if (PW_SCATTERS) pw_preload(a + at - 1);
}

#if defined(PW_PREFETCH_SOFTWARE) && defined(__ARM_FEATURE_SVE)
#include <arm_sve.h>

/* What the group of indices at c addresses: an instruction for as many as a vector has doubles. */
PW_INLINE void pw_indirect_prefetch_group(const double *a, const double *b, const int32_t *c)
{
    for (int64_t k = 0; k < pw_group; k += (int64_t)svcntd()) {
        const svbool_t these = svwhilelt_b64_s64(k, pw_group);
        const svint64_t at = svsub_n_s64_x(these, svld1sw_s64(these, c + k), 1);
        if (PW_GATHERS) svprfd_gather_s64index(these, b, at, SV_PLDL1KEEP);
        if (PW_SCATTERS) svprfd_gather_s64index(these, a, at, SV_PSTL1KEEP);
    }
}

/* The groups of elements whose prefetches are within n, with gather prefetches; returns how many elements these are. */
PW_INLINE int64_t pw_indirect_gathering(int64_t n, double *a, const double *b, const int32_t *c, double s, int64_t ahead)
{
    int64_t i = 0;
    PW_NO_UNROLL
    for (; i + pw_group + ahead <= n; i += pw_group) {
        pw_indirect_prefetch_group(a, b, c + i + ahead);
        PW_UNROLL
        for (int k = 0; k < pw_group; k++) pw_indirect_element(a, b, c[i + k], s, i + k);
    }
    return i;
}
#endif

void pw_indirect_run(int64_t n, double *a, const double *b, const int32_t *c, double s,
                     const struct pw_indirect_tuning *tuning)
{
    const int64_t ahead = tuning->ahead;
    int64_t i = 0;
#if defined(PW_PREFETCH_SOFTWARE)
#if defined(__ARM_FEATURE_SVE)
    if (tuning->gather) i = pw_indirect_gathering(n, a, b, c, s, ahead);
#endif
    PW_NO_UNROLL
    for (; i + pw_group + ahead <= n; i += pw_group) {
        PW_UNROLL
        for (int k = 0; k < pw_group; k++) {
            pw_indirect_prefetch(a, b, c[i + k + ahead]);
            pw_indirect_element(a, b, c[i + k], s, i + k);
        }
    }
#endif
    while (i < n) {
        int64_t last = n;
#if defined(PW_PREFETCH_BLOCK)
        last = i + ahead < n ? i + ahead : n;
        for (int64_t k = i; k < last; k++) pw_indirect_preload(a, b, c[k]);
#endif
        PW_NO_UNROLL
        for (; i + pw_group <= last; i += pw_group) {
            PW_UNROLL
            for (int k = 0; k < pw_group; k++) pw_indirect_element(a, b, c[i + k], s, i + k);
        }
        PW_NO_UNROLL
        for (; i < last; i++) pw_indirect_element(a, b, c[i], s, i);
    }
    (void)ahead;
}

#endif
#endif
