/* A call of timed code that passes over many streams at once; pw_bundle.f90 declares the same type. */
#ifndef PAGEWISE_BUNDLE_CALL_H
#define PAGEWISE_BUNDLE_CALL_H

#include <stdint.h>

#include "pw_ahead.h"
#include "pw_stream_call.h"

struct pw_bundle_call {
    int64_t passes, elements;      /* elements: words of 8 bytes, of any type; whole cache lines */
    int64_t stride;                /* such words from the start of one stream to that of the next */
    int64_t inputs, outputs;       /* streams that are read; that are written */
    const double *in;              /* the first word of the first stream of each */
    double *out;
    struct pw_ahead ahead;         /* prefetch=software */
    int64_t block;                 /* prefetch=block: bytes of each input that are loaded before use */
    int64_t zero_distance;            /* stores=zfill: distance in bytes of the zeroed outputs */
    double scalar;
    double sum;                    /* output of a reduction: the sum of the last pass */
    int32_t fused, by_prefetch;    /* prefetch=block: all inputs in one loop; by prefetch instructions */
    int32_t type;                  /* of the elements, as PW_FP64 */
};

/* Returns PW_STREAM_OK, or PW_STREAM_NO_TYPE if the build does not support the type. */
int32_t pw_bundle_run(struct pw_bundle_call *call);

#endif
