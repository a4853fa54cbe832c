/* b(i,j) = a(j,i), or b(i,j) = b(i,j) + a(j,i), columns `leading` elements apart. Stores are non-temporal in the
 * variants of that name. */
#ifndef PAGEWISE_TRANSPOSE_H
#define PAGEWISE_TRANSPOSE_H

#include "pw_widths.h"

#ifdef PW_STORES_NONTEMPORAL
#define transpose_put pw_stream_line
#define transpose_fence pw_stream_fence
#else
#define transpose_put pw_store_line
#define transpose_fence() (void)0
#endif

/* The timed kernels: the columns first..last-1 of b, of n elements. `add` is 0 or 1. Plain loops, and tiles. The arrays
 * start at a cache line. */
void pw_transpose_naive(int64_t n, int64_t leading, int64_t first, int64_t last, const double *a, double *b, int64_t add);
void pw_transpose_tiled(int64_t n, int64_t leading, int64_t first, int64_t last, const double *a, double *b, int64_t add);

/* What no line holds completely. The barrier keeps compilers from vectorising it, in one variant and not in another. */
PW_INLINE void transpose_scalar(int64_t from, int64_t to, int64_t leading, const double *a, double *b, int64_t add)
{
    PW_NO_UNROLL
    for (int64_t i = from; i < to; i++) {
        b[i] = add ? b[i] + a[i * leading] : a[i * leading];
        __asm__ volatile("" ::: "memory");
    }
}

#endif
