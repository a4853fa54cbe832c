/* One operation, repeated; driver.f90 declares the same numbers. */
#ifndef PAGEWISE_ARITHMETIC_H
#define PAGEWISE_ARITHMETIC_H

#include <stdint.h>

/* In the order of --operation. A conversion includes the way back. */
enum {
    arithmetic_add = 1, arithmetic_sub, arithmetic_mul, arithmetic_div, arithmetic_sqrt, arithmetic_fma, arithmetic_min,
    arithmetic_max, arithmetic_abs, arithmetic_sign, arithmetic_to_fp32, arithmetic_to_int64, arithmetic_to_int32
};

enum {
    arithmetic_steps = 63,  /* operations on each element in a pass */
    arithmetic_ok = 0,
    arithmetic_none = 1     /* not supported by the processor or this build */
};

struct arithmetic_call {
    int64_t passes, elements;
    void *x;
    double a;           /* x = x + a, x - a, x * a, a / x, x * 1 + a, min(x, a), max(x, a), |x|, sign of a on x */
    int32_t operation, type, simd;
    int32_t one_chain;  /* each operation waits for the previous one: latency; else as many in flight as registers hold */
    int32_t flips;      /* the sign of a changes after every pass */
};

int32_t pw_arithmetic_run(struct arithmetic_call *call);

#endif
