/* c = c + alpha a b for square matrices of fp64, stored by columns, without a library. */
#ifndef PAGEWISE_BLOCKED_DGEMM_H
#define PAGEWISE_BLOCKED_DGEMM_H

#include <stdint.h>

/* As numbered in main.f90. */
enum {
    pw_gemm_dot = 1, /* an element of c after the other: along a row of a, each element is a column further on */
    pw_gemm_axpy,    /* a column of a times an element of b, over and over */
    pw_gemm_blocked, /* blocks for caches and tiles for registers, read where they lie: many pages a block */
    pw_gemm_packed   /* the same blocks, first copied together: few pages a block */
};

/* One thread's work: the columns of b and c that it has. */
struct pw_gemm_call {
    int64_t passes, way;
    int64_t n, columns;         /* of a: rows and columns; of b and c */
    int64_t stride;             /* elements from column to column of a, b and c */
    int64_t rows, depth, width; /* of blocks: rows and columns of a, columns of b */
    double alpha;               /* changes its sign after every pass */
    const double *a, *b;
    double *c;
    double *block, *panel; /* packed: rows x depth of a, depth x width of b, both in whole tiles */
};

void pw_blocked_dgemm(const struct pw_gemm_call *call);

/* Rows and columns of a tile, which blocks and panels are multiples of. */
void pw_gemm_tile(int64_t *rows, int64_t *columns);

#endif
