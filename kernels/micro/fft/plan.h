/* Transforms by the library, for the driver. */
#ifndef PAGEWISE_FFT_PLAN_H
#define PAGEWISE_FFT_PLAN_H

#include <stdint.h>

/* Whether the library has transforms of the type. */
int32_t pw_fft_has(int32_t type);

/* A plan for transforms of n numbers forward, made with effort 1 (estimate), 2 (measure) or 3 (patient), which except for
 * the first overwrites both arrays. */
void *pw_fft_plan(int32_t type, int64_t n, int64_t effort, void *in, void *out);

void pw_fft_forget(int32_t type, void *plan);

/* Timed code: `count` consecutive transforms of n numbers each. */
void pw_fft_run(int32_t type, void *plan, int64_t passes, int64_t count, int64_t n, void *in, void *out);

#endif
