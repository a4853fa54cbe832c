/* The timed code: a call of one of BLAS' four GEMM routines, by its Fortran symbol.
 *
 * Source: Dongarra et al., A set of level 3 basic linear algebra subprograms, ACM TOMS 16 (1990). */
#include <stddef.h>
#include <stdint.h>

/* The last arguments are the lengths of both characters, as Fortran compilers pass them. */
typedef void gemm_routine(const char *transa, const char *transb, const int *m, const int *n, const int *k, const void *alpha,
                          const void *a, const int *lda, const void *b, const int *ldb, const void *beta, void *c, const int *ldc,
                          size_t transa_length, size_t transb_length);
gemm_routine sgemm_, dgemm_, cgemm_, zgemm_;

/* In the order of the types in driver.f90: single and double precision, then complex. */
static gemm_routine *const routines[] = {sgemm_, dgemm_, cgemm_, zgemm_};

static int is_single(int32_t type)
{
    return type % 2 == 1;
}

/* c = c + alpha a b for the columns of b and c of one thread; see driver.f90. */
void pw_gemm_call(int32_t type, int64_t n, int64_t columns, int64_t stride, double alpha, const void *a, const void *b, void *c);
void pw_gemm_call(int32_t type, int64_t n, int64_t columns, int64_t stride, double alpha, const void *a, const void *b, void *c)
{
    const int rows = (int)n, width = (int)columns, step = (int)stride;
    /* With an imaginary part, which is only read for complex numbers. */
    const double factor[] = {alpha, 0.0}, one[] = {1.0, 0.0};
    const float single_factor[] = {(float)alpha, 0.0F}, single_one[] = {1.0F, 0.0F};
    const void *const by = is_single(type) ? (const void *)single_factor : factor;
    const void *const unchanged = is_single(type) ? (const void *)single_one : one;
    routines[type - 1]("N", "N", &rows, &width, &rows, by, a, &step, b, &step, unchanged, c, &step, 1, 1);
}
