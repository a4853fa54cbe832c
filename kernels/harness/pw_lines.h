/* Passes over many streams at once, line by line: components of the arrays of inputs and outputs; pw_stream.h includes this file.
 * Streams of every type are passed over by words of 8 bytes. */
#ifndef PAGEWISE_LINES_H
#define PAGEWISE_LINES_H

#include "pw_group.h"
#include "pw_prefetch.h"
#include "pw_stream_call.h"
#include "pw_widths.h"
#include "pw_zero.h"

enum {
    pw_most_streams = 32,
    pw_sum_lines = PW_SUMS > pw_line_vectors ? PW_SUMS / pw_line_vectors : 1,
    pw_most_sums = pw_sum_lines * pw_line_vectors
};

/* The work on the line at byte `at` of the streams. */
typedef void pw_line_work(void *const *out, const void *const *in, int64_t at, pw_vector s, pw_vector *sum);

#if defined(PW_PREFETCH_BLOCK)
/* Of all streams that are read. */
__attribute__((noinline)) static void pw_load_lines(const struct pw_stream_call *call, void *const *out, int outputs,
                                                     const void *const *in, int inputs, int64_t first, int64_t last)
{
    pw_load_block(call, in, inputs, first, last);
    if (PW_READS_OUT) pw_load_block(call, (const void *const *)out, outputs, first, last);
}
#endif

/* One pass in a mode of prefetch=software: `work` on every line. The numbers of streams are compile-time constants. A reduction,
 * which has no outputs, has separate sums for several lines, so that none waits for the other; pw_most_sums in `sum` suffice. */
PW_INLINE void pw_over_in(const struct pw_stream_call *call, const int mode, void *const *out, const int outputs,
                          const void *const *in, const int inputs, pw_line_work *work, pw_vector s, pw_vector *sum)
{
    const int wanted = (PW_SUMS + inputs * pw_line_vectors - 1) / (inputs * pw_line_vectors);
    const int lines = outputs > 0 ? 1 : wanted < pw_sum_lines ? wanted : pw_sum_lines;
    const int64_t n = 8 * call->elements;
    const struct pw_prefetch_plan plan = call->plan;
#if defined(PW_PREFETCH_BLOCK)
    const int64_t wanted_block = call->block / PW_LINE_BYTES * PW_LINE_BYTES;
    const int64_t block = wanted_block > 0 ? wanted_block : PW_LINE_BYTES;
#else
    const int64_t block = n;
#endif
    struct pw_zeroing zero[pw_most_streams];
    PW_EACH(j, outputs) zero[j] = pw_zero_begin(out[j], n, 1, call->zero_distance);
    for (int64_t first = 0; first < n; first += block) {
        const int64_t end = first + block < n ? first + block : n;
#if defined(PW_PREFETCH_BLOCK)
        pw_load_lines(call, out, outputs, in, inputs, first, end);
#endif
        int64_t at = first;
        PW_NO_UNROLL
        for (const int64_t last = end - lines * PW_LINE_BYTES; at <= last; at += lines * PW_LINE_BYTES)
            PW_EACH(l, lines)
            {
                pw_prefetch_streams(&plan, mode, out, outputs, in, inputs, at + l * PW_LINE_BYTES);
                PW_EACH(j, outputs) pw_zero_until(&zero[j], (char *)out[j] + at + PW_LINE_BYTES);
                work(out, in, at + l * PW_LINE_BYTES, s, sum + l * pw_line_vectors);
            }
        for (; lines > 1 && at < end; at += PW_LINE_BYTES) work(out, in, at, s, sum);
    }
}

/* One pass in the mode of the call. */
PW_INLINE void pw_over(const struct pw_stream_call *call, void *const *out, const int outputs, const void *const *in,
                       const int inputs, pw_line_work *work, pw_vector s, pw_vector *sum)
{
#if defined(PW_PREFETCH_SOFTWARE)
#define PW_OVER_IN(mode) pw_over_in(call, mode, out, outputs, in, inputs, work, s, sum)
    const int64_t mode = call->plan.mode;
    if (inputs + outputs > PW_FOLLOWED && mode == PW_PREFETCH_SURPLUS)
        PW_OVER_IN(PW_PREFETCH_SURPLUS);
    else if (inputs + outputs > PW_FOLLOWED && mode == (PW_PREFETCH_SURPLUS | PW_PREFETCH_INTO_L2))
        PW_OVER_IN(PW_PREFETCH_SURPLUS | PW_PREFETCH_INTO_L2);
    else if (mode == PW_PREFETCH_INTO_L2)
        PW_OVER_IN(PW_PREFETCH_INTO_L2);
    else
        PW_OVER_IN(0);
#undef PW_OVER_IN
#else
    pw_over_in(call, 0, out, outputs, in, inputs, work, s, sum);
#endif
}

/* Stream j of those that are written, or read. */
PW_INLINE void *pw_out(const struct pw_stream_call *call, int64_t j)
{
    return (double *)call->array[0] + j * call->stride;
}

PW_INLINE void *pw_in(const struct pw_stream_call *call, int64_t j)
{
    return (double *)call->array[1] + j * call->stride;
}

/* One pass over these numbers of streams. */
PW_INLINE void pw_over_all(const struct pw_stream_call *call, const int outputs, const int inputs, pw_line_work *work, pw_vector s,
                           pw_vector *sum)
{
    const void *in[pw_most_streams];
    void *out[pw_most_streams];
    PW_EACH(j, inputs) in[j] = pw_in(call, j);
    PW_EACH(j, outputs) out[j] = pw_out(call, j);
    pw_over(call, out, outputs, in, inputs, work, s, sum);
}

#endif
