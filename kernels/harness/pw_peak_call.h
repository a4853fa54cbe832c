/* A call of the loop of independent multiply-adds. */
#ifndef PAGEWISE_PEAK_CALL_H
#define PAGEWISE_PEAK_CALL_H

#include <stdint.h>

#include "pw_simd.h"

enum { PW_PEAK_FP64 = 1, PW_PEAK_FP32 };

enum {
    PW_PEAK_STEPS = 256, /* multiply-adds of each element in a pass */
    PW_PEAK_OK = 0,
    PW_PEAK_NONE = 1 /* this build does not support such vectors */
};

struct pw_peak_call {
    int64_t passes, elements;
    void *x;
    double factor, summand; /* x = x*factor + summand; the summand changes its sign after every pass */
    int32_t type, simd;     /* simd: output, if it was `compiler`: the width that the build's flags select */
};

int32_t pw_peak_run(struct pw_peak_call *call);

#endif
