/* Each operation in every type and width. Results are opaque to the compiler, so that each operation is executed as
 * written. */
#include "arithmetic.h"

#include "pw_group.h"
#include "pw_stream_call.h"
#include "pw_widths.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define ONE(DO, STEP) DO(0, STEP)

#define TAKE(u, STEP) x[u] = *(const VL *)(p + i + u * lanes);
#define PUT(u, STEP) *(VL *)(p + i + u * lanes) = x[u];
#define APPLY(u, STEP) x[u] = STEP(x[u]); HIDE(x[u]);

/* Over the array, group by group: `chains` vectors are loaded, undergo all their steps, and are stored. */
#define OVER(chains, GROUP, STEP)                                                                                               \
    do {                                                                                                                        \
        for (int64_t pass = 0; pass < call->passes; pass++, s = call->flips ? -s : s) {                                         \
            const V a = EVERY(s);                                                                                               \
            (void)a;                                                                                                            \
            for (int64_t i = 0; i + (chains) * lanes <= call->elements; i += (chains) * lanes) {                                \
                V x[chains];                                                                                                    \
                GROUP(TAKE, STEP)                                                                                               \
                for (int step = 0; step < arithmetic_steps; step += 3) {                                                        \
                    GROUP(APPLY, STEP) GROUP(APPLY, STEP) GROUP(APPLY, STEP)                                                    \
                }                                                                                                               \
                GROUP(PUT, STEP)                                                                                                \
            }                                                                                                                   \
        }                                                                                                                       \
        return arithmetic_ok;                                                                                                   \
    } while (0)
/* One chain to its end before the next begins: all passes on one vector, because in a single pass the processor would
 * already start the following vectors. */
#define ONE_BY_ONE(STEP)                                                                                                        \
    do {                                                                                                                        \
        for (int64_t i = 0; i + lanes <= call->elements; i += lanes) {                                                          \
            T by = s;                                                                                                           \
            V x[1];                                                                                                             \
            ONE(TAKE, STEP)                                                                                                     \
            for (int64_t pass = 0; pass < call->passes; pass++, by = call->flips ? -by : by) {                                  \
                const V a = EVERY(by);                                                                                          \
                (void)a;                                                                                                        \
                for (int step = 0; step < arithmetic_steps; step += 3) {                                                        \
                    ONE(APPLY, STEP) ONE(APPLY, STEP) ONE(APPLY, STEP)                                                          \
                }                                                                                                               \
            }                                                                                                                   \
            ONE(PUT, STEP)                                                                                                      \
        }                                                                                                                       \
        return arithmetic_ok;                                                                                                   \
    } while (0)
#define CASE(operation, STEP)                                                                                                   \
    case operation:                                                                                                             \
        if (call->one_chain) ONE_BY_ONE(STEP);                                                                                  \
        OVER(CHAINS, GROUP_OF, STEP);

#define ADD(x) ((x) + a)
#define SUB(x) ((x) - a)
#define MUL(x) ((x) * a)
#define DIV(x) (a / (x))
#define FMA(x) ((x) * one + a)

#define PASTED_(a, b, c) a##_##b##c
#define PASTED(a, b, c) PASTED_(a, b, c)

/* The instances: kernel_type.h defines the function NAME for vectors V of LANES numbers T, and undefines these names. */
#define T double
#define B int64_t
#define BITS 64
#define FLOATING 1
#define TYPE fp64
#include "kernel_type.h"
#define T float
#define B int32_t
#define BITS 32
#define FLOATING 1
#define TYPE fp32
#include "kernel_type.h"
#define T int64_t
#define B int64_t
#define BITS 64
#define FLOATING 0
#define TYPE int64
#include "kernel_type.h"
#define T int32_t
#define B int32_t
#define BITS 32
#define FLOATING 0
#define TYPE int32
#include "kernel_type.h"

int32_t pw_arithmetic_run(struct arithmetic_call *call)
{
    if (call->simd == PW_SIMD_COMPILER) call->simd = PW_BUILD_SIMD;
    switch (call->type) {
    case PW_FP64: return fp64_run(call);
    case PW_FP32: return fp32_run(call);
    case PW_INT64: return int64_run(call);
    case PW_INT32: return int32_run(call);
    default: return arithmetic_none;
    }
}
