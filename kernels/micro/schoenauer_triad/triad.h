/* a(i) = b(i) + c(i)*d(i), for the variants that a compiler does not make out of the plain loop.
 *
 * All take n elements of a, b, c and d, which do not overlap; `put` is pw_store or pw_stream. */
#ifndef PAGEWISE_TRIAD_H
#define PAGEWISE_TRIAD_H

#include "pw_vector.h"

typedef void (*triad_put)(double *, pw_vector);

/* The timed kernel, one implementation a variant. `tuning` is the prefetch distance in elements (software), the
 * elements of a block (block), and without meaning otherwise. */
void pw_triad(int64_t n, double *a, const double *b, const double *c, const double *d, int64_t tuning);

PW_INLINE void triad_scalar(int64_t first, int64_t last, double *a, const double *b, const double *c, const double *d)
{
    for (int64_t i = first; i < last; i++) a[i] = b[i] + c[i] * d[i];
}

/* Elements before the first whose a stands at the start of a cache line. */
PW_INLINE int64_t triad_head(int64_t n, const double *a)
{
    int64_t head = (int64_t)((0 - (uintptr_t)a / sizeof *a) % pw_line_doubles);
    return head < n ? head : n;
}

/* One cache line of a. */
PW_INLINE void triad_line(int64_t i, double *a, const double *b, const double *c, const double *d, triad_put put)
{
    for (int64_t k = i; k < i + pw_line_doubles; k += pw_vector_doubles)
        put(a + k, pw_load(b + k) + pw_load(c + k) * pw_load(d + k));
}

/* Whole lines from first up to last, two at a time; returns where it stopped. */
PW_INLINE int64_t triad_lines(int64_t first, int64_t last, double *a, const double *b, const double *c, const double *d,
                              triad_put put)
{
    int64_t i = first;
    for (; i + 2 * pw_line_doubles <= last; i += 2 * pw_line_doubles) {
        triad_line(i, a, b, c, d, put);
        triad_line(i + pw_line_doubles, a, b, c, d, put);
    }
    return i;
}

/* Each line of the inputs, and of a where it is stored through the caches, is asked for `distance` elements ahead. */
PW_INLINE void triad_software(int64_t n, double *a, const double *b, const double *c, const double *d, int64_t distance,
                              triad_put put, int prefetch_a)
{
    int64_t i = triad_head(n, a);
    triad_scalar(0, i, a, b, c, d);
    for (; i + pw_line_doubles <= n; i += pw_line_doubles) {
        pw_prefetch_read(b + i + distance);
        pw_prefetch_read(c + i + distance);
        pw_prefetch_read(d + i + distance);
        if (prefetch_a) pw_prefetch_write(a + i + distance);
        triad_line(i, a, b, c, d, put);
    }
    triad_scalar(i, n, a, b, c, d);
}

/* A block of each input is loaded into the cache, one array after the other, before it is worked on: separate loops,
 * since several streams at once load worse (Hager et al. 2005, section 3.2). */
PW_INLINE void triad_block(int64_t n, double *a, const double *b, const double *c, const double *d, int64_t block,
                           triad_put put)
{
    int64_t i = triad_head(n, a);
    triad_scalar(0, i, a, b, c, d);
    while (i < n) {
        int64_t end = i + block < n ? i + block : n;
        for (int64_t k = i; k < end; k += pw_line_doubles) pw_preload(b + k);
        for (int64_t k = i; k < end; k += pw_line_doubles) pw_preload(c + k);
        for (int64_t k = i; k < end; k += pw_line_doubles) pw_preload(d + k);
        int64_t done = triad_lines(i, end, a, b, c, d, put);
        triad_scalar(done, end, a, b, c, d);
        i = end;
    }
}

#endif
