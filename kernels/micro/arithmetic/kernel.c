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

#define TAKE(u, STEP) x[u] = *(const PW_OWN(memory) *)(p + i + u * lanes);
#define PUT(u, STEP) *(PW_OWN(memory) *)(p + i + u * lanes) = x[u];
#define APPLY(u, STEP) x[u] = STEP(x[u]); HIDE(x[u]);

/* Over the array, group by group: `chains` vectors are loaded, undergo all their steps, and are stored. */
#define OVER(chains, GROUP, STEP)                                                                                               \
    do {                                                                                                                        \
        for (int64_t pass = 0; pass < call->passes; pass++, s = call->flips ? -s : s) {                                         \
            const V a = s - (V){0};                                                                                             \
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
            PW_T by = s;                                                                                                        \
            V x[1];                                                                                                             \
            ONE(TAKE, STEP)                                                                                                     \
            for (int64_t pass = 0; pass < call->passes; pass++, by = call->flips ? -by : by) {                                  \
                const V a = by - (V){0};                                                                                        \
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

/* Integers of 256 and 512 bits need more than the instruction set of pw_vector.h. */
#if !defined(__AVX2__)
#undef PW_HAS_256
#undef PW_IF_256
#define PW_IF_256(...)
#endif
#if !defined(__AVX512DQ__)
#undef PW_HAS_512
#undef PW_IF_512
#define PW_IF_512(...)
#endif

#define PW_TEMPLATE "kernel_width.h"
#define BITS 64
#define B int64_t
#define FLOATING 1
#define PW_TYPE fp64
#define PW_T double
#include "pw_each_width.h"
#undef FLOATING
#define FLOATING 0
#define PW_TYPE int64
#define PW_T int64_t
#include "pw_each_width.h"
#undef BITS
#undef B
#define BITS 32
#define B int32_t
#define PW_TYPE int32
#define PW_T int32_t
#include "pw_each_width.h"
#undef FLOATING
#define FLOATING 1
#define PW_TYPE fp32
#define PW_T float
#include "pw_each_width.h"

int32_t pw_arithmetic_run(struct arithmetic_call *call)
{
    if (call->simd == PW_SIMD_COMPILER) call->simd = PW_BUILD_SIMD;
#define RUN_FP64(width) pw_fp64_##width##_run(call)
#define RUN_FP32(width) pw_fp32_##width##_run(call)
#define RUN_INT64(width) pw_int64_##width##_run(call)
#define RUN_INT32(width) pw_int32_##width##_run(call)
    if (call->type == PW_FP64) PW_RETURN_OF_WIDTH(call->simd, RUN_FP64)
    if (call->type == PW_FP32) PW_RETURN_OF_WIDTH(call->simd, RUN_FP32)
    if (call->type == PW_INT64) PW_RETURN_OF_WIDTH(call->simd, RUN_INT64)
    if (call->type == PW_INT32) PW_RETURN_OF_WIDTH(call->simd, RUN_INT32)
    return arithmetic_none;
}
