/* The parts of FFTW's interface, version 3, used here, as in its manual and in MKL, ArmPL and AMD's FFTW. Declared here, so
 * that the objects compile without a library and link with any. */
#ifndef PAGEWISE_FFTW_INTERFACE_H
#define PAGEWISE_FFTW_INTERFACE_H

typedef struct fftw_plan_s *fftw_plan;
typedef double fftw_complex[2];
typedef struct fftwf_plan_s *fftwf_plan;
typedef float fftwf_complex[2];

/* Numbered as in driver.f90. */
enum { PW_FFT_FP64 = 1, PW_FFT_FP32 = 2 };

enum { FFTW_FORWARD = -1 };
#define FFTW_MEASURE (0U)
#define FFTW_PRESERVE_INPUT (1U << 4)
#define FFTW_PATIENT (1U << 5)
#define FFTW_ESTIMATE (1U << 6)

fftw_plan fftw_plan_dft_1d(int n, fftw_complex *in, fftw_complex *out, int sign, unsigned flags);
void fftw_execute_dft(fftw_plan plan, fftw_complex *in, fftw_complex *out);
void fftw_destroy_plan(fftw_plan plan);

/* Single precision is often a separate library (libfftw3f). A build without it has fp64 only. */
#if defined(__GNUC__)
#define PW_FFT_OPTIONAL __attribute__((weak))
#else
#define PW_FFT_OPTIONAL
#endif
PW_FFT_OPTIONAL fftwf_plan fftwf_plan_dft_1d(int n, fftwf_complex *in, fftwf_complex *out, int sign, unsigned flags);
PW_FFT_OPTIONAL void fftwf_execute_dft(fftwf_plan plan, fftwf_complex *in, fftwf_complex *out);
PW_FFT_OPTIONAL void fftwf_destroy_plan(fftwf_plan plan);

#endif
