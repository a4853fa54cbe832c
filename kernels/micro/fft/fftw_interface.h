/* The parts of FFTW's interface, version 3, used here, as in its manual and in MKL, ArmPL and AMD's FFTW. Declared here, so
 * that the objects compile without a library and link with any. */
#ifndef PAGEWISE_FFTW_INTERFACE_H
#define PAGEWISE_FFTW_INTERFACE_H

typedef struct fftw_plan_s *fftw_plan;
typedef double fftw_complex[2];

enum { FFTW_FORWARD = -1 };
#define FFTW_MEASURE (0U)
#define FFTW_PRESERVE_INPUT (1U << 4)
#define FFTW_PATIENT (1U << 5)
#define FFTW_ESTIMATE (1U << 6)

fftw_plan fftw_plan_dft_1d(int n, fftw_complex *in, fftw_complex *out, int sign, unsigned flags);
void fftw_execute_dft(fftw_plan plan, fftw_complex *in, fftw_complex *out);
void fftw_destroy_plan(fftw_plan plan);

#endif
