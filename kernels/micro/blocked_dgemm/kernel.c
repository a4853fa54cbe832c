/* Blocked matrix multiplication: three loops over blocks, two over tiles, one in registers.
 *
 * Source: K. Goto, R. van de Geijn, Anatomy of high-performance matrix multiplication, ACM TOMS 34 (2008): a sliver of b stays
 * in the first cache, a block of a in the second and, packed, within reach of the TLB; F. Van Zee, R. van de Geijn, BLIS,
 * ACM TOMS 41 (2015), for the loops. */
#include "blocked_dgemm.h"

#include <stdbool.h>

/* The widest vectors are best here, unless others are requested: nothing waits for memory. */
#ifndef PW_VECTOR_BITS
#define PW_VECTOR_BITS 512
#endif
#include "pw_widths.h"

/* A tile of c fills most of the 32 or 16 registers. Of 16, ten sums, two vectors of a and a factor of b leave
 * three: with fewer left, compilers keep a sum in memory and wait for it. */
enum {
#if defined(__AVX512VL__) || defined(__aarch64__)
    vectors = 3,
    tile_columns = 8,
#else
    vectors = 2,
    tile_columns = 5,
#endif
    tile_rows = vectors * pw_vector_doubles
};

void pw_gemm_tile(int64_t *rows, int64_t *columns)
{
    *rows = tile_rows;
    *columns = tile_columns;
}

PW_INLINE int64_t least(int64_t i, int64_t j)
{
    return i < j ? i : j;
}

/* A tile of c, plus alpha times `depth` columns of a times rows of b. a is `a_step` elements from column to column; b is
 * `b_row` from row to row and `b_column` from column to column. */
PW_WIDE PW_INLINE void tile(int64_t depth, double alpha, const double *a, int64_t a_step, const double *b, int64_t b_row,
                            int64_t b_column, double *c, int64_t c_step)
{
    pw_vector sum[tile_columns][vectors];
    PW_UNROLL
    for (int j = 0; j < tile_columns; j++) {
        PW_UNROLL
        for (int v = 0; v < vectors; v++) sum[j][v] = (pw_vector){0.0};
    }
    for (int64_t p = 0; p < depth; p++) {
        pw_vector column[vectors];
        PW_UNROLL
        for (int v = 0; v < vectors; v++) column[v] = pw_load(a + p * a_step + v * pw_vector_doubles);
        PW_UNROLL
        for (int j = 0; j < tile_columns; j++) {
            const double factor = b[p * b_row + j * b_column];
            PW_UNROLL
            for (int v = 0; v < vectors; v++) sum[j][v] += column[v] * factor;
        }
    }
    PW_UNROLL
    for (int j = 0; j < tile_columns; j++) {
        PW_UNROLL
        for (int v = 0; v < vectors; v++) {
            double *at = c + j * c_step + v * pw_vector_doubles;
            pw_store(at, pw_load(at) + alpha * sum[j][v]);
        }
    }
}

/* The same for a partial tile at the edge of the matrix, element by element. */
static void rest_of_tile(int64_t rows, int64_t columns, int64_t depth, double alpha, const double *a, int64_t a_step,
                         const double *b, int64_t b_row, int64_t b_column, double *c, int64_t c_step)
{
    for (int64_t j = 0; j < columns; j++) {
        double sum[tile_rows] = {0.0};
        for (int64_t p = 0; p < depth; p++) {
            const double factor = b[p * b_row + j * b_column];
            for (int64_t i = 0; i < rows; i++) sum[i] += a[p * a_step + i] * factor;
        }
        for (int64_t i = 0; i < rows; i++) c[j * c_step + i] += alpha * sum[i];
    }
}

/* Copy rows x depth of a to contiguous memory, tile after tile, column after column, padded with zeros at the edge of the
 * matrix. */
static void pack_block(int64_t rows, int64_t depth, const double *a, int64_t stride, double *block)
{
    for (int64_t i = 0; i < rows; i += tile_rows) {
        const int64_t there = least(tile_rows, rows - i);
        for (int64_t p = 0; p < depth; p++, block += tile_rows) {
            const double *column = a + p * stride + i;
            if (there == tile_rows)
                for (int k = 0; k < tile_rows; k++) block[k] = column[k];
            else
                for (int64_t k = 0; k < tile_rows; k++) block[k] = k < there ? column[k] : 0.0;
        }
    }
}

/* Copy depth x columns of b to contiguous memory, tile after tile, row after row. */
static void pack_panel(int64_t depth, int64_t columns, const double *b, int64_t stride, double *panel)
{
    for (int64_t j = 0; j < columns; j += tile_columns, panel += depth * tile_columns) {
        const int64_t there = least(tile_columns, columns - j);
        for (int64_t k = 0; k < tile_columns; k++) {
            const double *column = b + (j + k) * stride;
            for (int64_t p = 0; p < depth; p++) panel[p * tile_columns + k] = k < there ? column[p] : 0.0;
        }
    }
}

/* rows x columns of c plus alpha times a block of a times a panel of b, both packed. A partial tile at the edge of the
 * matrix is computed completely in a buffer. */
static void by_packed_tiles(int64_t rows, int64_t columns, int64_t depth, double alpha, const double *block,
                            const double *panel, double *c, int64_t stride)
{
    for (int64_t j = 0; j < columns; j += tile_columns) {
        for (int64_t i = 0; i < rows; i += tile_rows) {
            const double *a = block + i * depth, *b = panel + j * depth;
            double *at = c + j * stride + i;
            if (i + tile_rows <= rows && j + tile_columns <= columns) {
                tile(depth, alpha, a, tile_rows, b, tile_columns, 1, at, stride);
                continue;
            }
            double aside[tile_columns * tile_rows] = {0.0};
            tile(depth, alpha, a, tile_rows, b, tile_columns, 1, aside, tile_rows);
            for (int64_t l = 0; l < least(tile_columns, columns - j); l++)
                for (int64_t k = 0; k < least(tile_rows, rows - i); k++) at[l * stride + k] += aside[l * tile_rows + k];
        }
    }
}

/* The same with a and b in place. */
static void by_tiles(int64_t rows, int64_t columns, int64_t depth, double alpha, const double *a, const double *b, double *c,
                     int64_t stride)
{
    for (int64_t j = 0; j < columns; j += tile_columns) {
        for (int64_t i = 0; i < rows; i += tile_rows) {
            double *at = c + j * stride + i;
            if (i + tile_rows <= rows && j + tile_columns <= columns)
                tile(depth, alpha, a + i, stride, b + j * stride, 1, stride, at, stride);
            else
                rest_of_tile(least(tile_rows, rows - i), least(tile_columns, columns - j), depth, alpha, a + i, stride,
                             b + j * stride, 1, stride, at, stride);
        }
    }
}

void pw_gemm_by_tile_loops(const int64_t tile_size[2], int64_t rows, int64_t columns, int64_t depth, double alpha,
                           const double *block, const double *panel, int64_t stride, double *c);

static void by_blocks(const struct pw_gemm_call *call, double alpha)
{
    const int64_t n = call->n, stride = call->stride, tile_size[2] = {tile_rows, tile_columns};
    const bool packs = call->way != pw_gemm_blocked;
    for (int64_t j = 0; j < call->columns; j += call->width) {
        const int64_t columns = least(call->width, call->columns - j);
        for (int64_t p = 0; p < n; p += call->depth) {
            const int64_t depth = least(call->depth, n - p);
            const double *b = call->b + j * stride + p;
            if (packs) pack_panel(depth, columns, b, stride, call->panel);
            for (int64_t i = 0; i < n; i += call->rows) {
                const int64_t rows = least(call->rows, n - i);
                const double *a = call->a + p * stride + i;
                double *c = call->c + j * stride + i;
                if (packs) pack_block(rows, depth, a, stride, call->block);
                if (call->way == pw_gemm_fortran) {
                    pw_gemm_by_tile_loops(tile_size, rows, columns, depth, alpha, call->block, call->panel, stride, c);
                } else if (packs) {
                    by_packed_tiles(rows, columns, depth, alpha, call->block, call->panel, c, stride);
                } else {
                    by_tiles(rows, columns, depth, alpha, a, b, c, stride);
                }
            }
        }
    }
}

void pw_gemm_by_loops(int64_t way, int64_t n, int64_t columns, int64_t stride, double alpha, const double *a, const double *b,
                      double *c);

void pw_blocked_dgemm(const struct pw_gemm_call *call)
{
    double alpha = call->alpha;
    for (int64_t pass = 0; pass < call->passes; pass++, alpha = -alpha) {
        if (call->way == pw_gemm_dot || call->way == pw_gemm_axpy)
            pw_gemm_by_loops(call->way, call->n, call->columns, call->stride, alpha, call->a, call->b, call->c);
        else
            by_blocks(call, alpha);
    }
}
