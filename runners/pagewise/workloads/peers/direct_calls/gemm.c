/* c = c + a b by a library's CBLAS, called from C: LIBRARY sgemm|dgemm|cgemm|zgemm ROWS STRIDE REPETITIONS
 *
 * A peer of the kernels that call BLAS from Fortran, and of the one that does without. Square matrices by columns, STRIDE
 * elements from column to column. It prints the library's file, the rate of the fastest repetition by 2 n**3 operations (of
 * complex numbers 8 n**3), and whether c was right. Interface: CBLAS of Netlib's reference BLAS. */
#include "common.h"

enum { by_columns = 102, as_it_is = 111 };

#define GEMM(type, scalar)                                                                                                     \
    void (*type)(int, int, int, int, int, int, scalar, const void *, int, const void *, int, scalar, void *, int)
union routine {
    GEMM(fp64, double);
    GEMM(fp32, float);
    GEMM(complex_numbers, const void *);
};

struct work {
    union routine call;
    int of_double, of_complex, rows, stride;
    void *a, *b, *c;
};

/* The first pass adds a b to c, the next takes it away again, and so on. */
static void multiply(void *given, int64_t number)
{
    const struct work *work = given;
    const int n = work->rows, step = work->stride;
    const double alpha = number % 2 == 0 ? 1.0 : -1.0;
    const double alpha_fp64[2] = {alpha, 0.0}, beta_fp64[2] = {1.0, 0.0};
    const float alpha_fp32[2] = {(float)alpha, 0.0f}, beta_fp32[2] = {1.0f, 0.0f};
    if (work->of_complex)
        work->call.complex_numbers(by_columns, as_it_is, as_it_is, n, n, n, work->of_double ? (const void *)alpha_fp64 : alpha_fp32,
                                   work->a, step, work->b, step, work->of_double ? (const void *)beta_fp64 : beta_fp32, work->c,
                                   step);
    else if (work->of_double)
        work->call.fp64(by_columns, as_it_is, as_it_is, n, n, n, alpha, work->a, step, work->b, step, 1.0, work->c, step);
    else
        work->call.fp32(by_columns, as_it_is, as_it_is, n, n, n, (float)alpha, work->a, step, work->b, step, 1.0f, work->c, step);
}

/* Whole numbers from -3 to 3, so that all sums are exact; `part` 1 is imaginary. */
static double value(int matrix, int64_t i, int64_t j, int part)
{
    const uint64_t mixed = (uint64_t)(i * 7919 + j * 104729 + matrix * 1299709 + part * 15485863) * UINT64_C(0x9e3779b97f4a7c15);
    return (double)((mixed >> 33) % 7) - 3.0;
}

static void put(const struct work *work, int matrix, void *array)
{
    const int parts = 1 + work->of_complex;
    for (int64_t j = 0; j < work->rows; j++)
        for (int64_t i = 0; i < work->rows; i++)
            for (int part = 0; part < parts; part++) {
                const int64_t place = (j * work->stride + i) * parts + part;
                if (work->of_double)
                    ((double *)array)[place] = value(matrix, i, j, part);
                else
                    ((float *)array)[place] = (float)value(matrix, i, j, part);
            }
}

static double got(const struct work *work, int64_t i, int64_t j, int part)
{
    const int64_t place = (j * work->stride + i) * (1 + work->of_complex) + part;
    return work->of_double ? ((double *)work->c)[place] : (double)((float *)work->c)[place];
}

/* Whether columns and rows all over c are c0 + a b. */
static int is_right(const struct work *work)
{
    const int64_t n = work->rows;
    for (int64_t sample = 0; sample < 64; sample++) {
        const int64_t i = sample % 8 * (n - 1) / 7, j = sample / 8 * (n - 1) / 7;
        double real = value(3, i, j, 0), imaginary = value(3, i, j, 1);
        for (int64_t p = 0; p < n; p++) {
            const double a = value(1, i, p, 0), b = value(2, p, j, 0);
            const double a_i = work->of_complex ? value(1, i, p, 1) : 0.0, b_i = work->of_complex ? value(2, p, j, 1) : 0.0;
            real += a * b - a_i * b_i;
            imaginary += a * b_i + a_i * b;
        }
        if (got(work, i, j, 0) != real || (work->of_complex && got(work, i, j, 1) != imaginary)) return 0;
    }
    return 1;
}

int main(int count, char **words)
{
    if (count != 6 || strlen(words[2]) != 5 || strchr("sdcz", words[2][0]) == NULL || strcmp(words[2] + 1, "gemm") != 0)
        fail(USAGE, words[0], "LIBRARY sgemm|dgemm|cgemm|zgemm ROWS STRIDE REPETITIONS");
    const char kind = words[2][0];
    struct work work = {.of_double = kind == 'd' || kind == 'z', .of_complex = kind == 'c' || kind == 'z'};
    work.rows = (int)count_of(words[3], 1 << 20);
    work.stride = (int)count_of(words[4], 1 << 21);
    const int64_t repetitions = count_of(words[5], 1000000);
    if (work.stride < work.rows) fail(USAGE, words[4], "less than the rows");

    char name[16];
    snprintf(name, sizeof name, "cblas_%s", words[2]);
    find(opened(words[1]), name, &work.call);
    print_file(&work.call);
    const size_t bytes = (size_t)work.stride * (size_t)work.rows * (work.of_double ? 8u : 4u) * (work.of_complex ? 2u : 1u);
    work.a = memory(bytes), work.b = memory(bytes), work.c = memory(bytes);
    put(&work, 1, work.a), put(&work, 2, work.b), put(&work, 3, work.c);

    struct timed timed = {.pass = multiply, .work = &work};
    const double seconds = fastest_pass(repetitions, &timed);
    /* An even number of passes would look like work left undone. */
    if (timed.done % 2 == 0) multiply(&work, timed.done);
    if (!is_right(&work)) fail(WRONG, words[2], "its result is wrong");
    const double n = work.rows;
    printf("%s %d rows, check passed\n", words[2], work.rows);
    printf("gflop_per_s %.6g\n", (work.of_complex ? 8.0 : 2.0) * n * n * n / seconds * 1e-9);
    return 0;
}
