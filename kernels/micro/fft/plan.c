#include "plan.h"
#include "fftw_interface.h"

#include <stddef.h>

int32_t pw_fft_has(int32_t type)
{
#if defined(__GNUC__)
    return type == PW_FFT_FP64 || (fftwf_plan_dft_1d != NULL && fftwf_execute_dft != NULL);
#else
    return type == PW_FFT_FP64;
#endif
}

void *pw_fft_plan(int32_t type, int64_t n, int64_t effort, void *in, void *out)
{
    static const unsigned efforts[] = {FFTW_ESTIMATE, FFTW_MEASURE, FFTW_PATIENT};
    const unsigned flags = efforts[effort - 1] | FFTW_PRESERVE_INPUT;
    if (type == PW_FFT_FP64) return fftw_plan_dft_1d((int)n, in, out, FFTW_FORWARD, flags);
    return fftwf_plan_dft_1d((int)n, in, out, FFTW_FORWARD, flags);
}

void pw_fft_forget(int32_t type, void *plan)
{
    if (plan == NULL) return;
    if (type == PW_FFT_FP64)
        fftw_destroy_plan(plan);
    else
        fftwf_destroy_plan(plan);
}
