/* Independent multiply-adds, as many in flight as registers hold: the maximum of the processor.
 *
 * Each element undergoes PW_PEAK_STEPS of them per pass; a group of vectors is loaded, processed in registers, and stored. A
 * multiply-add of 4 cycles in 2 units (x86), or of 9 in 2 (A64FX), needs 8, or 18, in flight. */
#ifndef PAGEWISE_PEAK_H
#define PAGEWISE_PEAK_H

#include "pw_group.h"
#include "pw_peak_call.h"
#include "pw_widths.h"

#if defined(__ARM_FEATURE_SVE)
#include <arm_sve.h>
typedef svfloat64_t pw_fp64_sve_vector;
typedef svfloat32_t pw_fp32_sve_vector;
#define pw_fp64_sve_every svdup_n_f64
#define pw_fp32_sve_every svdup_n_f32
#endif

#define PW_TEMPLATE "pw_peak_width.h"
#define PW_WITH_VLA
#define PW_TYPE fp64
#define PW_T double
#include "pw_each_width.h"
#define PW_TYPE fp32
#define PW_T float
#include "pw_each_width.h"
#undef PW_WITH_VLA
#undef PW_TEMPLATE

int32_t pw_peak_run(struct pw_peak_call *call)
{
    if (call->simd == PW_SIMD_COMPILER) call->simd = PW_BUILD_SIMD;
#define PW_RUN_FP64(width) pw_fp64_##width##_peak(call)
#define PW_RUN_FP32(width) pw_fp32_##width##_peak(call)
#if defined(__ARM_FEATURE_SVE)
    if (call->simd == PW_SIMD_VLA) return call->type == PW_PEAK_FP64 ? PW_RUN_FP64(vla) : PW_RUN_FP32(vla);
#endif
    if (call->type == PW_PEAK_FP64) PW_RETURN_OF_WIDTH(call->simd, PW_RUN_FP64);
    if (call->type == PW_PEAK_FP32) PW_RETURN_OF_WIDTH(call->simd, PW_RUN_FP32);
    return PW_PEAK_NONE;
}

#endif
