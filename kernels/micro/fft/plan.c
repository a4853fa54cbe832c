/* Plans for the driver. */
#include "fftw_interface.h"

#include <stddef.h>
#include <stdint.h>

/* A plan for transforms of n numbers forward, made with effort 1 (estimate), 2 (measure) or 3 (patient), which except for
 * the first overwrites both arrays. */
void *pw_fft_plan(int64_t n, int64_t effort, fftw_complex *in, fftw_complex *out)
{
    static const unsigned flags[] = {FFTW_ESTIMATE, FFTW_MEASURE, FFTW_PATIENT};
    return fftw_plan_dft_1d((int)n, in, out, FFTW_FORWARD, flags[effort - 1] | FFTW_PRESERVE_INPUT);
}

void pw_fft_forget(void *plan)
{
    if (plan != NULL) fftw_destroy_plan(plan);
}
