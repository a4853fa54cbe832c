/* One transform after the other. */
#include "fftw_interface.h"
#include "plan.h"

void pw_fft_run(int32_t type, void *plan, int64_t passes, int64_t count, int64_t n, void *in, void *out)
{
    fftw_complex *const x = in, *const y = out;
    fftwf_complex *const narrow_x = in, *const narrow_y = out;
    for (int64_t pass = 0; pass < passes; pass++)
        for (int64_t i = 0; i < count; i++)
            if (type == PW_FFT_FP64)
                fftw_execute_dft(plan, x + i * n, y + i * n);
            else
                fftwf_execute_dft(plan, narrow_x + i * n, narrow_y + i * n);
}
