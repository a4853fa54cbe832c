/* Skips the last transform: validation must detect it. */
#include "fftw_interface.h"
#include "pw_broken.h"

void pw_fft_run(void *plan, int64_t passes, int64_t count, int64_t n, fftw_complex *in, fftw_complex *out)
{
    for (int64_t pass = 0; pass < passes; pass++)
        for (int64_t i = 0; i < count - 1; i++) fftw_execute_dft(plan, in + i * n, out + i * n);
    pw_spoil(out + n, sizeof **out);
}
