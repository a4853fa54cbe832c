/* The transpose element by element along the columns of b, in explicit code; loop.f90 is the plain loop of loop=compiler.
 *
 * The tiled transpose, whose pages and lines stay in the TLB and the caches: the matrix is halved along
 * its longer side until a tile remains (Frigo, Leiserson, Prokop and Ramachandran, Cache-oblivious algorithms, 1999),
 * and a tile consists of blocks of a cache line by a cache line, which are transposed in registers. */
#include "transpose.h"
#include "pw_zero.h"

enum { tile = 64, line = pw_line_doubles, width = pw_vector_doubles, vectors = line / width };

/* Elements of two vectors by number, counted across both. */
#if defined(__clang__) || __GNUC__ >= 12
#define shuffle(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
typedef int64_t mask __attribute__((vector_size(PW_VECTOR_BYTES)));
#define shuffle(x, y, ...) __builtin_shuffle(x, y, (mask){__VA_ARGS__})
#endif

/* Exchange the off-diagonal elements in the 2 x 2 blocks of vectors `distance` apart. */
#define exchange(distance, low, high)                 \
    for (int i = 0; i < width; i++)                   \
        if (!(i & distance)) {                        \
            pw_vector x = v[i], y = v[i + distance];  \
            v[i] = shuffle(x, y, low);                \
            v[i + distance] = shuffle(x, y, high);    \
        }
#define list(...) __VA_ARGS__

PW_INLINE void transpose_registers(pw_vector v[width])
{
#if PW_VECTOR_BYTES == 64
    exchange(1, list(0, 8, 2, 10, 4, 12, 6, 14), list(1, 9, 3, 11, 5, 13, 7, 15))
    exchange(2, list(0, 1, 8, 9, 4, 5, 12, 13), list(2, 3, 10, 11, 6, 7, 14, 15))
    exchange(4, list(0, 1, 2, 3, 8, 9, 10, 11), list(4, 5, 6, 7, 12, 13, 14, 15))
#elif PW_VECTOR_BYTES == 32
    exchange(1, list(0, 4, 2, 6), list(1, 5, 3, 7))
    exchange(2, list(0, 1, 4, 5), list(2, 3, 6, 7))
#elif PW_VECTOR_BYTES == 16
    exchange(1, list(0, 2), list(1, 3))
#else
    (void)v;
#endif
}

/* Store a line of b from vectors of it. */
PW_INLINE void put_line(double *to, const pw_vector *v, int64_t add)
{
    pw_vector x[vectors];
    for (int part = 0; part < vectors; part++) x[part] = add ? pw_load(to + part * width) + v[part] : v[part];
    if (!add) {
        struct pw_zeroing zero = pw_zero_begin(to, line, sizeof *to, 0);
        pw_zero_until(&zero, to + line);
    }
    transpose_put(to, x);
}

#if defined(PW_LOOP_EXPLICIT)

/* The elements that are `leading` apart. */
PW_INLINE pw_vector vector_of(const double *row, int64_t leading)
{
    pw_vector v = {0};
    PW_UNROLL
    for (int k = 0; k < width; k++) PW_SET_LANE(v, k, row[k * leading]);
    return v;
}

PW_INLINE void naive_column(int64_t n, int64_t leading, const double *row, double *column, int64_t add)
{
    int64_t i = (int64_t)((0 - (uintptr_t)column / sizeof *column) % line);
    if (i > n) i = n;
    transpose_scalar(0, i, leading, row, column, add);
    PW_NO_UNROLL
    for (; i + line <= n; i += line) {
        pw_vector v[vectors];
        for (int part = 0; part < vectors; part++) v[part] = vector_of(row + (i + part * width) * leading, leading);
        put_line(column + i, v, add);
    }
    transpose_scalar(i, n, leading, row, column, add);
}

void pw_transpose_naive(int64_t n, int64_t leading, int64_t first, int64_t last, const double *a, double *b, int64_t add)
{
    for (int64_t j = first; j < last; j++) {
        if (add)
            naive_column(n, leading, a + j, b + j * leading, 1);
        else
            naive_column(n, leading, a + j, b + j * leading, 0);
    }
    transpose_fence();
}

#endif

struct matrices {
    int64_t leading;
    const double *a;
    double *b;
};

/* One line of each of some columns of b, from part of a line of the columns of a, as many as a line has elements. */
PW_INLINE void transpose_strip(int64_t leading, const double *a, double *b, int64_t add)
{
    pw_vector v[vectors][width], x[vectors];
    for (int part = 0; part < vectors; part++) {
        for (int i = 0; i < width; i++) {
            v[part][i] = pw_load(a + (part * width + i) * leading);
            PW_OPAQUE(v[part][i]); /* one load, instead of one per shuffle */
        }
        transpose_registers(v[part]);
    }
    for (int i = 0; i < width; i++) {
        for (int part = 0; part < vectors; part++) x[part] = v[part][i];
        put_line(b + i * leading, x, add);
    }
}

/* Rows row..row_end-1 of the columns column..column_end-1 of b; rows begin at a cache line. */
PW_INLINE void transpose_tile(struct matrices m, int64_t row, int64_t row_end, int64_t column, int64_t column_end, int64_t add)
{
    for (; column + line <= column_end; column += line) {
        int64_t i = row;
        PW_NO_UNROLL
        for (; i + line <= row_end; i += line) {
            const double *const a = m.a + column + i * m.leading;
            double *const b = m.b + i + column * m.leading;
            PW_UNROLL
            for (int j = 0; j < line; j += width) transpose_strip(m.leading, a + j, b + j * m.leading, add);
        }
        for (int64_t j = column; j < column + line; j++)
            transpose_scalar(i, row_end, m.leading, m.a + j, m.b + j * m.leading, add);
    }
    for (; column < column_end; column++)
        transpose_scalar(row, row_end, m.leading, m.a + column, m.b + column * m.leading, add);
}

static void transpose_halves(struct matrices m, int64_t row, int64_t row_end, int64_t column, int64_t column_end, int64_t add)
{
    const int64_t rows = row_end - row, columns = column_end - column;
    if (rows <= tile && columns <= tile) {
        if (add)
            transpose_tile(m, row, row_end, column, column_end, 1);
        else
            transpose_tile(m, row, row_end, column, column_end, 0);
    } else if (rows > columns) {
        const int64_t half = row + (rows / 2 + tile - 1) / tile * tile;
        transpose_halves(m, row, half, column, column_end, add);
        transpose_halves(m, half, row_end, column, column_end, add);
    } else {
        const int64_t half = column + (columns / 2 + tile - 1) / tile * tile;
        transpose_halves(m, row, row_end, column, half, add);
        transpose_halves(m, row, row_end, half, column_end, add);
    }
}

void pw_transpose_tiled(int64_t n, int64_t leading, int64_t first, int64_t last, const double *a, double *b, int64_t add)
{
    transpose_halves((struct matrices){leading, a, b}, 0, n, first, last, add);
    transpose_fence();
}
