/* A call of timed code that passes over streams. */
#ifndef PAGEWISE_STREAM_CALL_H
#define PAGEWISE_STREAM_CALL_H

#include <stdint.h>

#include "pw_prefetch_plan.h"
#include "pw_simd.h"

/* Types of the elements, in the order of --type. */
enum { PW_FP64 = 1, PW_FP32, PW_FP16, PW_BF16, PW_INT64, PW_INT32, PW_INT16, PW_INT8 };

/* Results of a call: done, or what this build does not support. */
enum { PW_STREAM_OK = 0, PW_STREAM_NO_TYPE = 1, PW_STREAM_NO_SIMD = 2 };

struct pw_stream_call {
    int64_t passes;
    int64_t elements;              /* of each stream; of many streams: words of 8 bytes, of any type, in whole cache lines */
    void *array[4];                /* a, b, c, d: their first elements; of many streams: the first output and the first input */
    int64_t stride;                /* of many streams: such words from the start of one stream to that of the next */
    int64_t outputs, inputs;       /* streams that are written; that are only read */
    struct pw_prefetch_plan plan;         /* prefetch=software */
    int64_t block;                 /* prefetch=block: bytes of each input that are loaded before use */
    int64_t zero_distance;         /* stores=zfill: distance in bytes of the zeroed part of the outputs */
    double scalar;
    double sum;                    /* output of a reduction: the sum of the last pass */
    int32_t type, simd;
    int32_t fused, by_prefetch;    /* prefetch=block: all inputs in one loop; by prefetch instructions */
};

/* 16-bit floats, if the compiler supports them. bf16 only if the processor converts it: clang otherwise calls
 * a helper that exists in libgcc since 13. */
#if defined(__FLT16_MAX__)
#define PW_HAS_FP16
__extension__ typedef _Float16 pw_half;
#endif
#if defined(__BFLT16_MAX__) ||                                                                                                  \
    (defined(__clang__) && __clang_major__ >= 17 && (defined(__AVX512BF16__) || defined(__ARM_FEATURE_BF16)))
#define PW_HAS_BF16
__extension__ typedef __bf16 pw_brain;
/* A double as an element: bf16 through float, which the processor converts; the conversion from double would need another
 * such helper. */
#define PW_NARROWED(T, value) ((T)_Generic((T)0, pw_brain: (float)(value), default: (value)))
#else
#define PW_NARROWED(T, value) ((T)(value))
#endif

int32_t pw_stream_run(struct pw_stream_call *call);

/* Set elements first (from 0) to first+n-1 of an array to the values, which the type must represent, or read them. Return
 * PW_STREAM_NO_TYPE if the compiler does not support the type. */
int32_t pw_elements_put(int32_t type, void *array, int64_t first, int64_t n, const double values[]);
int32_t pw_elements_get(int32_t type, const void *array, int64_t first, int64_t n, double values[]);

#endif
