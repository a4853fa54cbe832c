/* The timed code of a kernel of many streams for every type of its elements. kernel.c defines PW_WORK, the name of the file with
 * the work on a line (pw_bundle_type.h), and then includes this file. With PW_LOOP_COMPILER it also defines the pass over fp64,
 * pw_fp64_loop, which calls plain Fortran loops; other types are always explicit code. */
#ifndef PAGEWISE_BUNDLE_TYPES_H
#define PAGEWISE_BUNDLE_TYPES_H

#include "pw_bundle.h"

/* Without the processor's own arithmetic, compilers emulate it element by element: GCC 12 then compiles for minutes. */
#if defined(PW_HAS_FP16) && (defined(__AVX512FP16__) || defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC))
#define PW_BUNDLE_FP16
#endif

#if !defined(PW_LOOP_COMPILER)
#define PW_TYPE fp64
#define PW_T double
#include "pw_bundle_type.h"
#endif
#define PW_TYPE fp32
#define PW_T float
#include "pw_bundle_type.h"
#if defined(PW_BUNDLE_FP16)
#define PW_TYPE fp16
#define PW_T pw_half
#include "pw_bundle_type.h"
#endif
#define PW_TYPE int64
#define PW_T int64_t
#include "pw_bundle_type.h"
#define PW_TYPE int32
#define PW_T int32_t
#include "pw_bundle_type.h"
#define PW_TYPE int16
#define PW_T int16_t
#include "pw_bundle_type.h"
#define PW_TYPE int8
#define PW_T int8_t
#include "pw_bundle_type.h"

typedef void pw_bundle_pass(const struct pw_bundle_call *call, double s);

/* The pass of a type, or 0. */
static pw_bundle_pass *pw_pass_of(int32_t type)
{
    switch (type) {
#if defined(PW_LOOP_COMPILER)
    case PW_FP64: return pw_fp64_loop;
#else
    case PW_FP64: return pw_fp64_pass;
#endif
    case PW_FP32: return pw_fp32_pass;
#if defined(PW_BUNDLE_FP16)
    case PW_FP16: return pw_fp16_pass;
#endif
    case PW_INT64: return pw_int64_pass;
    case PW_INT32: return pw_int32_pass;
    case PW_INT16: return pw_int16_pass;
    case PW_INT8: return pw_int8_pass;
    default: return 0;
    }
}

/* The sign of the scalar of an update changes after every pass, so that nothing grows. */
int32_t pw_bundle_run(struct pw_bundle_call *call)
{
    pw_bundle_pass *const run = pw_pass_of(call->type);
    double s = call->scalar;
    if (!run) return PW_STREAM_NO_TYPE;
    for (int64_t pass = 0; pass < call->passes; pass++) {
        run(call, s);
        if (PW_READS_OUT) s = -s;
        pw_pass_ends();
    }
    return PW_STREAM_OK;
}

#endif
