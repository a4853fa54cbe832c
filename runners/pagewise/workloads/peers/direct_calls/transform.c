/* Complex Fourier transforms by FFTW's interface, called from C: LIBRARY LENGTH COUNT REPETITIONS
 *
 * A peer of the kernel fft: COUNT transforms of LENGTH numbers, one after the other, from one array into another, planned by
 * FFTW_MEASURE. It prints the library's file, the rate of the fastest repetition by 5 n log2(n) operations, and whether the last
 * result was right. */
#include "common.h"
#include <math.h>

typedef double number[2];
typedef void *plan;
enum { forward = -1, measure = 0, preserve_input = 1 << 4 };

struct work {
    void (*execute)(plan, number *, number *);
    plan plan;
    int64_t length, count;
    number *in, *out;
};

static void transform(void *given, int64_t pass)
{
    const struct work *work = given;
    (void)pass;
    for (int64_t i = 0; i < work->count; i++) work->execute(work->plan, work->in + i * work->length, work->out + i * work->length);
}

/* Between -1 and 1, of no pattern. */
static double value(int64_t place)
{
    return (double)(((uint64_t)place * UINT64_C(0x9e3779b97f4a7c15)) >> 40) * 0x1p-23 - 1.0;
}

/* The largest error of some outputs of the last transform, by the sum that defines them, in units of their usual size. */
static double error_of(const struct work *work)
{
    const int64_t n = work->length, first = (work->count - 1) * n;
    double error = 0.0;
    for (int64_t sample = 0; sample < 4; sample++) {
        const int64_t k = (sample * (n - 1) / 3 + sample * 5) % n;
        double real = 0.0, imaginary = 0.0;
        for (int64_t j = 0; j < n; j++) {
            const double angle = -2.0 * 3.14159265358979323846 * (double)(j * k % n) / (double)n;
            const double x = work->in[first + j][0], y = work->in[first + j][1];
            real += x * cos(angle) - y * sin(angle);
            imaginary += x * sin(angle) + y * cos(angle);
        }
        error = fmax(error, hypot(work->out[first + k][0] - real, work->out[first + k][1] - imaginary));
    }
    return error / sqrt((double)n);
}

int main(int count, char **words)
{
    if (count != 5) fail(USAGE, words[0], "LIBRARY LENGTH COUNT REPETITIONS");
    struct work work = {.length = count_of(words[2], 1 << 28), .count = count_of(words[3], 1 << 28)};
    const int64_t repetitions = count_of(words[4], 1000000), all = work.length * work.count;
    if (work.length < 2) fail(USAGE, words[2], "no length of a transform");
    plan (*make)(int, number *, number *, int, unsigned);
    void *library = opened(words[1]);
    find(library, "fftw_plan_dft_1d", &make);
    find(library, "fftw_execute_dft", &work.execute);
    print_file(&work.execute);
    work.in = memory((size_t)all * sizeof(number)), work.out = memory((size_t)all * sizeof(number));
    work.plan = make((int)work.length, work.in, work.out, forward, measure | preserve_input);
    if (work.plan == NULL) fail(UNAVAILABLE, "fftw_plan_dft_1d", "made no plan");
    for (int64_t i = 0; i < all; i++) work.in[i][0] = value(2 * i), work.in[i][1] = value(2 * i + 1);

    struct timed timed = {.pass = transform, .work = &work};
    const double seconds = fastest_pass(repetitions, &timed);
    const double error = error_of(&work);
    if (!(error < 1e-11)) fail(WRONG, "fftw_execute_dft", "its result is wrong");
    const double n = (double)work.length;
    printf("transform %lld numbers, check passed\n", (long long)work.length);
    printf("gflop_per_s %.6g\n", 5.0 * n * log2(n) * (double)work.count / seconds * 1e-9);
    return 0;
}
