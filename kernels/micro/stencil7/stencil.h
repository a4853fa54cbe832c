/* unew = ((u(i+1) + u(i-1))*h1 + (u(j+1) + u(j-1))*h2 + (u(k+1) + u(k-1))*h3 - rhs) * h, for the variants that a
 * compiler does not generate from the plain loop. Stores are non-temporal in the variants of that name. */
#ifndef PAGEWISE_STENCIL_H
#define PAGEWISE_STENCIL_H

#include "pw_vector.h"
#include "pw_zero.h"

#ifdef PW_STORES_NONTEMPORAL
#define stencil_put pw_stream
enum { stencil_allocates = 0 };
#else
#define stencil_put pw_store
enum { stencil_allocates = 1 };
#endif

/* The timed kernel: `planes` planes of nx * ny points, whose edges stay unchanged; u, rhs and unew start with the
 * plane before these. The rows of a plane are processed in blocks of `rows`, all planes of a block before the next block.
 * h: the factors h1, h2, h3 and h. `tuning` is the prefetch distance in elements (software), otherwise unused. */
void pw_stencil7(int64_t nx, int64_t ny, int64_t planes, int64_t rows, int64_t tuning, const double *h, const double *u,
                 const double *rhs, double *unew);

/* Called for each line of each row, with the place of the line; and for each row, with its first point. */
typedef void (*stencil_prefetch)(const double *above, const double *rhs, double *unew, int64_t n);

PW_INLINE void stencil_scalar(int64_t first, int64_t last, int64_t nx, int64_t plane, const double *h, const double *u,
                              const double *rhs, double *unew)
{
    for (int64_t i = first; i < last; i++)
        unew[i] = ((u[i + 1] + u[i - 1]) * h[0] + (u[i + nx] + u[i - nx]) * h[1] + (u[i + plane] + u[i - plane]) * h[2] - rhs[i])
                  * h[3];
}

PW_INLINE pw_vector stencil_vector(int64_t i, int64_t nx, int64_t plane, const double *h, const double *u, const double *rhs)
{
    return ((pw_load(u + i + 1) + pw_load(u + i - 1)) * h[0] + (pw_load(u + i + nx) + pw_load(u + i - nx)) * h[1]
            + (pw_load(u + i + plane) + pw_load(u + i - plane)) * h[2] - pw_load(rhs + i)) * h[3];
}

/* A line of unew: its stores are consecutive, so that non-temporal stores fill a whole line. */
PW_INLINE void stencil_line(int64_t i, int64_t nx, int64_t plane, const double *h, const double *u, const double *rhs,
                            double *unew)
{
    enum { vectors = pw_line_doubles / pw_vector_doubles };
    pw_vector point[vectors];
    for (int v = 0; v < vectors; v++) point[v] = stencil_vector(i + v * pw_vector_doubles, nx, plane, h, u, rhs);
    for (int v = 0; v < vectors; v++) stencil_put(unew + i + v * pw_vector_doubles, point[v]);
}

/* A row of n points from u, rhs and unew. Only whole lines of unew are written by vectors: a non-temporal store of part of
 * a line costs a separate memory access. */
PW_INLINE void stencil_row(int64_t n, int64_t nx, int64_t plane, int64_t tuning, const double *h, const double *u,
                           const double *rhs, double *unew, stencil_prefetch prefetch_line)
{
    int64_t i = (int64_t)((0 - (uintptr_t)unew / sizeof *unew) % pw_line_doubles);
    if (i > n) i = n;
    stencil_scalar(0, i, nx, plane, h, u, rhs, unew);
    struct pw_zeroing zero = pw_zero_begin(unew + i, n - i, sizeof *unew, 0);
    for (; i + pw_line_doubles <= n; i += pw_line_doubles) {
        pw_zero_until(&zero, unew + i + pw_line_doubles);
        prefetch_line(u + plane + i, rhs + i, unew + i, tuning);
        stencil_line(i, nx, plane, h, u, rhs, unew);
    }
    stencil_scalar(i, n, nx, plane, h, u, rhs, unew);
}

PW_INLINE void stencil_rows(int64_t nx, int64_t ny, int64_t planes, int64_t rows, int64_t tuning, const double *h,
                            const double *u, const double *rhs, double *unew, stencil_prefetch preload_row, stencil_prefetch prefetch_line)
{
    const double factors[4] = {h[0], h[1], h[2], h[3]};
    for (int64_t block = 1; block < ny - 1; block += rows) {
        int64_t end = block + rows < ny - 1 ? block + rows : ny - 1;
        for (int64_t k = 1; k <= planes; k++)
            for (int64_t j = block; j < end; j++) {
                int64_t at = 1 + nx * (j + ny * k);
                preload_row(u + at + nx * ny, rhs + at, unew + at, nx - 2);
                stencil_row(nx - 2, nx, nx * ny, tuning, factors, u + at, rhs + at, unew + at, prefetch_line);
            }
    }
    if (!stencil_allocates) pw_stream_fence();
}

PW_INLINE void stencil_no_prefetch(const double *above, const double *rhs, double *unew, int64_t n)
{
    (void)above, (void)rhs, (void)unew, (void)n;
}

#endif
