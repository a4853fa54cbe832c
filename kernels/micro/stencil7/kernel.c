/* Explicit code of every variant; loop.f90 is the plain loop of loop=compiler. Whole lines of unew are written by vectors, whose
 * stores are consecutive: a non-temporal store of part of a line costs a separate memory access. */
#include "stencil.h"
#include "pw_widths.h"
#include "pw_zero.h"

#if defined(PW_STORES_NONTEMPORAL)
#define PUT pw_stream_line
enum { nontemporal = 1 };
#else
#define PUT pw_store_line
enum { nontemporal = 0 };
#endif

#if defined(PW_LOOP_EXPLICIT)

/* The point i of a grid: elements between rows and between planes, and the factors. */
struct stencil {
    int64_t row, plane;
    double h[4];
};

PW_INLINE void scalars(const struct stencil *s, int64_t first, int64_t last, const double *u, const double *rhs, double *unew)
{
    const double *const h = s->h;
    for (int64_t i = first; i < last; i++)
        unew[i] = ((u[i + 1] + u[i - 1]) * h[0] + (u[i + s->row] + u[i - s->row]) * h[1]
                   + (u[i + s->plane] + u[i - s->plane]) * h[2] - rhs[i])
                  * h[3];
}

PW_INLINE pw_vector vector(const struct stencil *s, const double *u, const double *rhs)
{
    const double *const h = s->h;
    return ((pw_load(u + 1) + pw_load(u - 1)) * h[0] + (pw_load(u + s->row) + pw_load(u - s->row)) * h[1]
            + (pw_load(u + s->plane) + pw_load(u - s->plane)) * h[2] - pw_load(rhs))
           * h[3];
}

PW_INLINE void line(const struct stencil *s, const double *u, const double *rhs, double *unew)
{
    pw_vector point[pw_line_vectors];
    for (int v = 0; v < pw_line_vectors; v++) point[v] = vector(s, u + v * pw_vector_doubles, rhs + v * pw_vector_doubles);
    PUT(unew, point);
}

/* The lines that are new to a row: those of the plane above, of rhs, and of unew if its stores are regular. */
PW_INLINE void prefetch(const double *above, const double *rhs, double *unew)
{
#if defined(PW_PREFETCH_SOFTWARE)
    pw_prefetch_read(above);
    pw_prefetch_read(rhs);
    if (!nontemporal) pw_prefetch_write(unew);
#else
    (void)above, (void)rhs, (void)unew;
#endif
}

/* All lines of the plane above and of rhs are loaded before the row is processed. */
PW_INLINE void preload(const double *above, const double *rhs, int64_t n)
{
#if defined(PW_PREFETCH_BLOCK)
    for (int64_t i = 0; i < n; i += pw_line_doubles) pw_preload(above + i);
    for (int64_t i = 0; i < n; i += pw_line_doubles) pw_preload(rhs + i);
#else
    (void)above, (void)rhs, (void)n;
#endif
}

/* A row of n points from u, rhs and unew. */
PW_INLINE void row_of(const struct stencil *s, int64_t n, int64_t distance, const double *u, const double *rhs, double *unew)
{
    int64_t i = (int64_t)((0 - (uintptr_t)unew / sizeof *unew) % pw_line_doubles);
    if (i > n) i = n;
    preload(u + s->plane, rhs, n);
    scalars(s, 0, i, u, rhs, unew);
    struct pw_zeroing zero = pw_zero_begin(unew + i, n - i, sizeof *unew, 0);
    PW_NO_UNROLL
    for (; i + pw_line_doubles <= n; i += pw_line_doubles) {
        pw_zero_until(&zero, unew + i + pw_line_doubles);
        prefetch(u + s->plane + i + distance, rhs + i + distance, unew + i + distance);
        line(s, u + i, rhs + i, unew + i);
    }
    scalars(s, i, n, u, rhs, unew);
}

void pw_stencil7(const int64_t *points, int64_t rows, int64_t distance, const double *h, const double *u, const double *rhs,
                 double *unew)
{
    const int64_t nx = points[0], ny = points[1], planes = points[2];
    const struct stencil s = {nx, nx * ny, {h[0], h[1], h[2], h[3]}};
    for (int64_t block = 1; block < ny - 1; block += rows) {
        const int64_t end = block + rows < ny - 1 ? block + rows : ny - 1;
        for (int64_t k = 1; k <= planes; k++)
            for (int64_t j = block; j < end; j++) {
                const int64_t at = 1 + nx * (j + ny * k);
                row_of(&s, nx - 2, distance, u + at, rhs + at, unew + at);
            }
    }
    if (nontemporal) pw_stream_fence();
}

#endif
