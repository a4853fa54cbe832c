/* Independent multiply-adds, as many in flight as registers hold: the maximum of the processor.
 *
 * Each element undergoes PW_PEAK_STEPS of them per pass; a group of vectors is loaded, processed in registers, and stored. A
 * multiply-add of 4 cycles in 2 units (x86), or of 9 in 2 (A64FX), needs 8, or 18, in flight. */
#ifndef PAGEWISE_PEAK_H
#define PAGEWISE_PEAK_H

#include "pw_fma.h"
#include "pw_group.h"
#include "pw_peak_call.h"

#define PW_PEAK_TAKE(u, name) name##_vector x##u = name##_load(x + i + u * lanes);
#define PW_PEAK_STEP(u, name) x##u = name##_fma(x##u, factor, summand);
#define PW_PEAK_OPAQUE(u, name) x##u = name##_hide(x##u);
#define PW_PEAK_PUT(u, name) name##_store(x + i + u * lanes, x##u);

/* Opaque at intervals: the compiler neither vectorises the values in registers, if scalars are requested, nor computes them
 * differently. */
#define PW_PEAK_FOUR_STEPS(name)                                                                                                \
    PW_GROUP(PW_PEAK_STEP, name)                                                                                                \
    PW_GROUP(PW_PEAK_STEP, name)                                                                                                \
    PW_GROUP(PW_PEAK_STEP, name)                                                                                                \
    PW_GROUP(PW_PEAK_STEP, name)                                                                                                \
    PW_GROUP(PW_PEAK_OPAQUE, name)

#define PW_DEFINE_PEAK(name, T, width_attribute)                                                                                \
    static width_attribute int32_t name##_peak(struct pw_peak_call *call)                                                       \
    {                                                                                                                           \
        T *x = call->x;                                                                                                         \
        const int64_t lanes = name##_lanes();                                                                                   \
        const int64_t group = pw_group * lanes;                                                                                 \
        const name##_vector factor = name##_every((T)call->factor);                                                             \
        T by = (T)call->summand;                                                                                                \
        for (int64_t pass = 0; pass < call->passes; pass++) {                                                                   \
            const name##_vector summand = name##_every(by);                                                                     \
            for (int64_t i = 0; i + group <= call->elements; i += group) {                                                      \
                PW_GROUP(PW_PEAK_TAKE, name)                                                                                    \
                for (int step = 0; step < PW_PEAK_STEPS; step += 4) { PW_PEAK_FOUR_STEPS(name) }                                \
                PW_GROUP(PW_PEAK_PUT, name)                                                                                     \
            }                                                                                                                   \
            by = -by;                                                                                                           \
        }                                                                                                                       \
        return PW_PEAK_OK;                                                                                                      \
    }

#define PW_DEFINE_PEAKS(type, T)                                                                                                \
    PW_DEFINE_PEAK(type##_scalar, T, )                                                                                          \
    PW_DEFINE_PEAK(type##_128, T, )                                                                                             \
    PW_IF_256(PW_DEFINE_PEAK(type##_256, T, ))                                                                                  \
    PW_IF_512(PW_DEFINE_PEAK(type##_512, T, PW_WIDE))                                                                           \
    PW_IF_VLA(PW_DEFINE_PEAK(type##_vla, T, ))                                                                                  \
    static int32_t type##_peak(struct pw_peak_call *call)                                                                       \
    {                                                                                                                           \
        switch (call->simd) {                                                                                                   \
        case PW_SIMD_SCALAR: return type##_scalar_peak(call);                                                                   \
        case PW_SIMD_128: return type##_128_peak(call);                                                                         \
            PW_IF_256(case PW_SIMD_256 : return type##_256_peak(call);)                                                         \
            PW_IF_512(case PW_SIMD_512 : return type##_512_peak(call);)                                                         \
            PW_IF_VLA(case PW_SIMD_VLA : return type##_vla_peak(call);)                                                         \
        default: return PW_PEAK_NONE;                                                                                           \
        }                                                                                                                       \
    }

PW_DEFINE_PEAKS(fp64, double)
PW_DEFINE_PEAKS(fp32, float)

int32_t pw_peak_run(struct pw_peak_call *call)
{
    if (call->simd == PW_SIMD_COMPILER) call->simd = PW_BUILD_SIMD;
    return call->type == PW_PEAK_FP64 ? fp64_peak(call) : fp32_peak(call);
}

#endif
