/* Software prefetches of streams. Each mode of struct pw_prefetch_plan has a separate loop, so that no branch is in any of them. */
#ifndef PAGEWISE_PREFETCH_H
#define PAGEWISE_PREFETCH_H

#include "pw_prefetch_plan.h"
#include "pw_vector.h"

#if defined(PW_PREFETCH_SOFTWARE) && defined(__ARM_FEATURE_SVE)
#include <arm_sve.h>
#define PW_PREFETCHES_BY_SVE
/* As assembly, with nothing that is written: with svprfd GCC 12 stores sums of vectors that it has registers for. */
#define PW_PRFD(operation, all, p) __asm__ volatile("prfd " operation ", %0, [%1]" : : "Upl"(all), "r"(p))
#endif

/* The levels of the caches: places in the arrays of struct pw_prefetch_plan. */
enum { pw_l1 = 0, pw_l2 = 1 };

/* Prefetch what lies at p. All but p are compile-time constants. */
PW_INLINE void pw_prefetch_at(const void *p, const int level, const int written, const int mode)
{
#if defined(PW_PREFETCHES_BY_SVE)
    if (mode & PW_PREFETCH_SVE) {
        const svbool_t all = svptrue_b64();
        if (level == pw_l1 && written) PW_PRFD("pstl1keep", all, p);
        if (level == pw_l1 && !written) PW_PRFD("pldl1keep", all, p);
        if (level == pw_l2 && written) PW_PRFD("pstl2keep", all, p);
        if (level == pw_l2 && !written) PW_PRFD("pldl2keep", all, p);
        return;
    }
#endif
    (void)mode;
    if (level == pw_l1 && written) pw_prefetch_write(p);
    if (level == pw_l1 && !written) pw_prefetch_read(p);
    if (level == pw_l2 && written) pw_prefetch_write_l2(p);
    if (level == pw_l2 && !written) pw_prefetch_read_l2(p);
}

/* Cases that call RUN with modes by SVE. */
#if defined(PW_PREFETCHES_BY_SVE)
#define PW_MODES_BY_SVE(RUN)                                                                                                    \
    case PW_PREFETCH_SVE: RUN(PW_PREFETCH_SVE); return;                                                                               \
    case PW_PREFETCH_SVE | PW_PREFETCH_INTO_L2: RUN(PW_PREFETCH_SVE | PW_PREFETCH_INTO_L2); return;
#else
#define PW_MODES_BY_SVE(RUN)
#endif

#endif
