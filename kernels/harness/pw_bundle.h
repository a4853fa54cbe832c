/* The timed code of a kernel that passes over many fp64 streams at once: the parts of pw_bundle_run in its kernel.c.
 * Streams of other types (pw_bundle_types.h) are passed over by words of 8 bytes as well.
 *
 * A kernel may define, before it includes this file:
 *   PW_UPDATES            it reads what it writes
 * The macros PW_PREFETCH_..., PW_STORES_..., PW_LOOP_... set the build's variant. With PW_LOOP_COMPILER the kernel calls
 * plain Fortran loops. */
#ifndef PAGEWISE_BUNDLE_H
#define PAGEWISE_BUNDLE_H

#include "pw_bundle_call.h"
#include "pw_group.h"
#include "pw_prefetch.h"
#include "pw_widths.h"
#include "pw_zero.h"

#if defined(PW_STORES_NONTEMPORAL)
#define PW_PAST_CACHES 1
#else
#define PW_PAST_CACHES 0
#endif
#if defined(PW_STORES_ZFILL)
#define PW_ZEROES 1
#else
#define PW_ZEROES 0
#endif
#if defined(PW_UPDATES)
#define PW_READS_OUT 1
#else
#define PW_READS_OUT 0
#endif

/* A loop over streams, or over the vectors of a line: fully unrolled. */
#if defined(__clang__)
#define PW_EACH(j, n) _Pragma("clang loop unroll(full)") for (int j = 0; j < (n); j++)
#else
#define PW_EACH(j, n) _Pragma("GCC unroll 32") for (int j = 0; j < (n); j++)
#endif

enum {
    pw_most_streams = 32,
    pw_sum_lines = PW_SUMS > pw_line_vectors ? PW_SUMS / pw_line_vectors : 1,
    pw_most_sums = pw_sum_lines * pw_line_vectors
};

/* The work on the line at element i of the streams. */
typedef void pw_line_work(double *const *out, const double *const *in, int64_t i, pw_vector s, pw_vector *sum);

/* Store the vectors of the line at p. */
PW_INLINE void pw_put(double *p, const pw_vector *v)
{
    if (PW_PAST_CACHES)
        pw_stream_line(p, v);
    else
        pw_store_line(p, v);
}

PW_INLINE pw_vector pw_every(double s)
{
    double lane[pw_vector_doubles];
    for (int l = 0; l < pw_vector_doubles; l++) lane[l] = s;
    return pw_load(lane);
}

PW_INLINE double pw_total(pw_vector v)
{
    double lane[pw_vector_doubles], total = 0;
    pw_store(lane, v);
    for (int l = 0; l < pw_vector_doubles; l++) total += lane[l];
    return total;
}

#if defined(PW_PREFETCH_BLOCK)
/* Load elements first to last of a stream into the cache. */
PW_INLINE void pw_bring(const double *stream, int64_t first, int64_t last, int by_prefetch)
{
    for (int64_t k = first; k < last; k += pw_line_doubles) {
        if (by_prefetch)
            pw_prefetch_read(stream + k);
        else
            pw_preload(stream + k);
    }
}

/* Of all streams that are read: one after the other, or all at once (fused). */
__attribute__((noinline)) static void pw_bring_block(const struct pw_bundle_call *call, double *const *out, int outputs,
                                                     const double *const *in, int inputs, int64_t first, int64_t last)
{
    const int64_t step = call->fused ? pw_line_doubles : last - first;
    for (int64_t k = first; k < last; k += step) {
        for (int j = 0; j < inputs; j++) pw_bring(in[j], k, k + step, call->by_prefetch);
        for (int j = 0; PW_READS_OUT && j < outputs; j++) pw_bring(out[j], k, k + step, call->by_prefetch);
    }
}
#endif

/* Into a level: the line of each stream that lies a distance after element i. Of the surplus, the first PW_FOLLOWED streams, the
 * inputs before the outputs, are left to the hardware's prefetchers. What is zeroed in L1 is not prefetched into L2. */
PW_INLINE void pw_ask_level(const struct pw_ahead *ahead, const int level, const int mode, double *const *out,
                            const int outputs, const double *const *in, const int inputs, int64_t i)
{
    const int left = mode & PW_AHEAD_SURPLUS ? PW_FOLLOWED : 0;
    PW_EACH(j, inputs) if (j >= left) pw_prefetch_at((const char *)(in[j] + i) + ahead->read[level], level, 0, mode);
    PW_EACH(j, outputs)
    {
        if (inputs + j < left) continue;
        if (!PW_PAST_CACHES && !(PW_ZEROES && level == pw_l2))
            pw_prefetch_at((const char *)(out[j] + i) + ahead->written[level], level, 1, mode);
        if (PW_PAST_CACHES && PW_READS_OUT) pw_prefetch_at((const char *)(out[j] + i) + ahead->read[level], level, 0, mode);
    }
}

PW_INLINE void pw_ask(const struct pw_ahead *ahead, const int mode, double *const *out, const int outputs,
                      const double *const *in, const int inputs, int64_t i)
{
#if defined(PW_PREFETCH_SOFTWARE)
    pw_ask_level(ahead, pw_l1, mode, out, outputs, in, inputs, i);
    if (mode & PW_AHEAD_L2) pw_ask_level(ahead, pw_l2, mode, out, outputs, in, inputs, i);
#else
    (void)ahead, (void)mode, (void)out, (void)outputs, (void)in, (void)inputs, (void)i;
#endif
}

/* One pass in a mode of prefetch=software: `work` on every line. The numbers of streams are compile-time constants. A reduction,
 * which has no outputs, has separate sums for several lines, so that none waits for the other; pw_most_sums in `sum` suffice. */
PW_INLINE void pw_over_in(const struct pw_bundle_call *call, const int mode, double *const *out, const int outputs,
                          const double *const *in, const int inputs, pw_line_work *work, pw_vector s, pw_vector *sum)
{
    const int wanted = (PW_SUMS + inputs * pw_line_vectors - 1) / (inputs * pw_line_vectors);
    const int lines = outputs > 0 ? 1 : wanted < pw_sum_lines ? wanted : pw_sum_lines;
    const int64_t n = call->elements;
    const struct pw_ahead ahead = call->ahead;
#if defined(PW_PREFETCH_BLOCK)
    const int64_t requested = call->block / PW_LINE_BYTES * pw_line_doubles;
    const int64_t block = requested > 0 ? requested : pw_line_doubles;
#else
    const int64_t block = n;
#endif
    struct pw_zeroing zero[pw_most_streams];
    PW_EACH(j, outputs) zero[j] = pw_zero_begin(out[j], n, sizeof *out[j], call->zero_distance);
    for (int64_t first = 0; first < n; first += block) {
        const int64_t end = first + block < n ? first + block : n;
#if defined(PW_PREFETCH_BLOCK)
        pw_bring_block(call, out, outputs, in, inputs, first, end);
#endif
        int64_t i = first;
        PW_NO_UNROLL
        for (const int64_t last = end - lines * pw_line_doubles; i <= last; i += lines * pw_line_doubles)
            PW_EACH(l, lines)
            {
                pw_ask(&ahead, mode, out, outputs, in, inputs, i + l * pw_line_doubles);
                PW_EACH(j, outputs) pw_zero_until(&zero[j], out[j] + i + pw_line_doubles);
                work(out, in, i + l * pw_line_doubles, s, sum + l * pw_line_vectors);
            }
        for (; lines > 1 && i < end; i += pw_line_doubles) work(out, in, i, s, sum);
    }
}

/* One pass in the mode of the call. */
PW_INLINE void pw_over(const struct pw_bundle_call *call, double *const *out, const int outputs, const double *const *in,
                       const int inputs, pw_line_work *work, pw_vector s, pw_vector *sum)
{
#if defined(PW_PREFETCH_SOFTWARE)
#define PW_OVER_IN(mode) pw_over_in(call, mode, out, outputs, in, inputs, work, s, sum)
    const int64_t mode = call->ahead.mode;
    if (inputs + outputs > PW_FOLLOWED && mode == PW_AHEAD_SURPLUS)
        PW_OVER_IN(PW_AHEAD_SURPLUS);
    else if (inputs + outputs > PW_FOLLOWED && mode == (PW_AHEAD_SURPLUS | PW_AHEAD_L2))
        PW_OVER_IN(PW_AHEAD_SURPLUS | PW_AHEAD_L2);
    else if (mode == PW_AHEAD_L2)
        PW_OVER_IN(PW_AHEAD_L2);
    else
        PW_OVER_IN(0);
#undef PW_OVER_IN
#else
    pw_over_in(call, 0, out, outputs, in, inputs, work, s, sum);
#endif
}

/* Vector k of the line at p. */
PW_INLINE pw_vector pw_part(const double *p, int k)
{
    return pw_load(p + k * pw_vector_doubles);
}

/* Stream j of those that are read, or written. */
PW_INLINE const double *pw_in(const struct pw_bundle_call *call, int64_t j)
{
    return call->in + j * call->stride;
}

PW_INLINE double *pw_out(const struct pw_bundle_call *call, int64_t j)
{
    return call->out + j * call->stride;
}

/* One pass over these numbers of streams. */
PW_INLINE void pw_over_all(const struct pw_bundle_call *call, const int outputs, const int inputs, pw_line_work *work, pw_vector s,
                           pw_vector *sum)
{
    const double *in[pw_most_streams];
    double *out[pw_most_streams];
    PW_EACH(j, inputs) in[j] = pw_in(call, j);
    PW_EACH(j, outputs) out[j] = pw_out(call, j);
    pw_over(call, out, outputs, in, inputs, work, s, sum);
}

/* Between passes: all stores must be done, and no loaded value may be kept. */
PW_INLINE void pw_pass_ends(void)
{
    if (PW_PAST_CACHES) pw_stream_fence();
    __asm__ volatile("" ::: "memory");
}

#endif
