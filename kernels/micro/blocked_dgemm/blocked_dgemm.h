/* c = c + alpha a b for square matrices of fp64, stored by columns, without a library. */
#ifndef PAGEWISE_BLOCKED_DGEMM_H
#define PAGEWISE_BLOCKED_DGEMM_H

#include <stdint.h>

/* Numbered as in driver.f90. */
enum {
    pw_gemm_dot = 1, /* one element of c after the other: successive elements of a row of a are in successive columns */
    pw_gemm_axpy,    /* a column of a times an element of b, repeatedly */
    pw_gemm_blocked, /* blocks for caches and tiles for registers, read in place: many pages per block */
    pw_gemm_packed,  /* the same blocks, first copied to contiguous memory: few pages per block */
    pw_gemm_fortran  /* the same copied blocks, the tiles by Fortran loops */
};

/* One thread's work: its columns of b and c. */
struct pw_gemm_call {
    int64_t passes, way;
    int64_t n, columns;         /* of a: rows and columns; of b and c */
    int64_t stride;             /* elements from column to column of a, b and c */
    int64_t rows, depth, width; /* of blocks: rows and columns of a, columns of b */
    double alpha;               /* its sign changes after every pass */
    const double *a, *b;
    double *c;
    double *block, *panel; /* packed: rows x depth of a, depth x width of b, both in whole tiles */
};

void pw_blocked_dgemm(const struct pw_gemm_call *call);

/* Rows and columns of a tile, which blocks and panels are multiples of. */
void pw_gemm_tile(int64_t *rows, int64_t *columns);

#endif
