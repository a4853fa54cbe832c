/* The timed code of a kernel that multiplies matrices by BLAS: a call of one of its four GEMM routines.
 *
 * PagewiseBlas.cmake writes a kernel.c that defines the following and includes this file:
 *   PW_GEMM               the routine, by its Fortran symbol name: dgemm_
 *   PW_ELEMENT            the type of the matrices' elements
 *
 * Source: Dongarra et al., A set of level 3 basic linear algebra subprograms, ACM TOMS 16 (1990). */
#ifndef PAGEWISE_BLAS_H
#define PAGEWISE_BLAS_H

#include <stddef.h>
#include <stdint.h>

/* The last arguments are the lengths of both characters, as Fortran compilers pass them. */
void PW_GEMM(const char *transa, const char *transb, const int *m, const int *n, const int *k, const PW_ELEMENT *alpha,
             const PW_ELEMENT *a, const int *lda, const PW_ELEMENT *b, const int *ldb, const PW_ELEMENT *beta, PW_ELEMENT *c,
             const int *ldc, size_t transa_length, size_t transb_length);

/* c = c + alpha a b for the columns of b and c of one thread; see pw_blas.f90. */
void pw_gemm_call(int64_t n, int64_t columns, int64_t stride, double alpha, const PW_ELEMENT *a, const PW_ELEMENT *b, PW_ELEMENT *c)
{
    const int rows = (int)n, width = (int)columns, step = (int)stride;
    const PW_ELEMENT factor = (PW_ELEMENT)alpha, one = 1;
    PW_GEMM("N", "N", &rows, &width, &rows, &factor, a, &step, b, &step, &one, c, &step, 1, 1);
}

#endif
