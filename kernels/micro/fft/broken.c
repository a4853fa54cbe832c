/* Skips the last transform: validation must detect it. */
#define pw_fft_run pw_fft_run_short
#include "kernel.c"
#undef pw_fft_run

#include "pw_broken.h"

void pw_fft_run(int32_t type, void *plan, int64_t passes, int64_t count, int64_t n, void *in, void *out)
{
    pw_fft_run_short(type, plan, passes, count - 1, n, in, out);
    pw_spoil((fftw_complex *)out + n, sizeof(double));
}
