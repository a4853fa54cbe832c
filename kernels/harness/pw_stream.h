/* The timed code of a kernel that passes over streams: arrays, read or written from start to end, of any type.
 *
 * A kernel's source defines its work and then includes this file, in one of these forms:
 *   PW_ELEMENT(a, b, c, d, s)   the value stored in a(i) or, with PW_REDUCES, added to the sum; for scalars and vectors
 *                               (pw_stream_loop.h). pagewise_stream_kernel in PagewiseEquation.cmake writes such sources, with
 *     PW_ARRAYS                 the number of the arrays a, b, c, d in the equation
 *     PW_READS_A                1 if it reads a
 *     PW_REDUCES                it returns a sum and stores nothing
 *   PW_WORK                     the name of a file with the pass of many streams, line by line (pw_lines.h)
 *   neither                     fp64 only: the source has pw_stream_run itself
 * and
 *   PW_FLIPS                    the sign of the scalar changes after every pass, so that nothing grows
 *   PW_LOOP_PARAMETERS, PW_LOOP_ARGUMENTS   of pw_loop, the plain Fortran loop over fp64
 * The macros PW_PREFETCH_..., PW_STORES_..., PW_LOOP_... set the build's variant. With PW_LOOP_COMPILER the loop over fp64 is
 * pw_loop. All others are explicit vector code: compilers drop or break non-temporal stores and prefetches in Fortran. */
#ifndef PAGEWISE_STREAM_H
#define PAGEWISE_STREAM_H

#include "pw_group.h"
#include "pw_prefetch.h"
#include "pw_stream_call.h"
#include "pw_widths.h"
#include "pw_zero.h"

#if defined(PW_STORES_NONTEMPORAL) && !defined(PW_REDUCES)
#define PW_NONTEMPORAL 1
#else
#define PW_NONTEMPORAL 0
#endif
#if defined(PW_STORES_ZFILL) && !defined(PW_REDUCES)
#define PW_ZEROES 1
#else
#define PW_ZEROES 0
#endif
/* Whether what is written is read before. */
#if !defined(PW_ELEMENT)
#if defined(PW_FLIPS)
#define PW_READS_OUT 1
#else
#define PW_READS_OUT 0
#endif
#elif defined(PW_REDUCES)
#define PW_READS_OUT 0
#else
#define PW_READS_OUT PW_READS_A
#endif
#if defined(PW_FLIPS)
#define PW_NEXT(s) (-(s))
#else
#define PW_NEXT(s) (s)
#endif

/* A loop over streams, or over the vectors of a line: fully unrolled. */
#if defined(__clang__)
#define PW_EACH(j, n) _Pragma("clang loop unroll(full)") for (int j = 0; j < (n); j++)
#else
#define PW_EACH(j, n) _Pragma("GCC unroll 32") for (int j = 0; j < (n); j++)
#endif

/* Between passes: all stores must be done, and no loaded value may be kept. */
PW_INLINE void pw_pass_ends(void)
{
    if (PW_NONTEMPORAL) pw_stream_fence();
    __asm__ volatile("" ::: "memory");
}

/* Into a level: the line of each stream that lies a distance after byte `at`. Of the surplus, the first PW_FOLLOWED streams, the
 * inputs before the outputs, are left to the hardware's prefetchers. What is zeroed in L1 is not prefetched into L2. */
PW_INLINE void pw_prefetch_level(const struct pw_prefetch_plan *plan, const int level, const int mode, void *const *out, const int outputs,
                            const void *const *in, const int inputs, int64_t at)
{
    const int left = mode & PW_PREFETCH_SURPLUS ? PW_FOLLOWED : 0;
    PW_EACH(j, outputs)
    {
        if (inputs + j < left) continue;
        if (!PW_NONTEMPORAL && !(PW_ZEROES && level == pw_l2))
            pw_prefetch_at((const char *)out[j] + at + plan->written[level], level, 1, mode);
        if (PW_NONTEMPORAL && PW_READS_OUT)
            pw_prefetch_at((const char *)out[j] + at + plan->read[level], level, 0, mode);
    }
    PW_EACH(j, inputs) if (j >= left) pw_prefetch_at((const char *)in[j] + at + plan->read[level], level, 0, mode);
}

PW_INLINE void pw_prefetch_streams(const struct pw_prefetch_plan *plan, const int mode, void *const *out, const int outputs, const void *const *in,
                      const int inputs, int64_t at)
{
#if defined(PW_PREFETCH_SOFTWARE)
    pw_prefetch_level(plan, pw_l1, mode, out, outputs, in, inputs, at);
    if (mode & PW_PREFETCH_INTO_L2) pw_prefetch_level(plan, pw_l2, mode, out, outputs, in, inputs, at);
#else
    (void)plan, (void)mode, (void)out, (void)outputs, (void)in, (void)inputs, (void)at;
#endif
}

PW_INLINE void pw_load_line(const char *line, int by_prefetch)
{
    if (by_prefetch)
        pw_prefetch_read(line);
    else
        pw_preload(line);
}

/* Load bytes first to last of each of n streams into the cache: one stream after the other, since several at once load worse
 * (Hager et al. 2005, section 3.2), or all at once (fused). */
PW_INLINE void pw_load_block(const struct pw_stream_call *call, const void *const *streams, const int n, int64_t first,
                              int64_t last)
{
    if (call->fused) {
        for (int64_t k = first; k < last; k += PW_LINE_BYTES)
            for (int j = 0; j < n; j++) pw_load_line((const char *)streams[j] + k, call->by_prefetch);
    } else {
        for (int j = 0; j < n; j++)
            for (int64_t k = first; k < last; k += PW_LINE_BYTES) pw_load_line((const char *)streams[j] + k, call->by_prefetch);
    }
}

#if !defined(PW_ELEMENT)
#include "pw_lines.h"
#endif

#if defined(PW_ELEMENT) || defined(PW_WORK)
#if defined(PW_ELEMENT)
/* The value from the vectors, or elements, of type V at element k of the arrays that the kernel reads. */
#define PW_TAKE(V, reads, p, k) ((reads) ? *(const V *)((p) + (k)) : (V){0})
#define PW_VALUE(V, k, s)                                                                                                       \
    PW_ELEMENT(PW_TAKE(V, PW_READS_A, a, k), PW_TAKE(V, PW_ARRAYS > 1, b, k), PW_TAKE(V, PW_ARRAYS > 2, c, k),                  \
               PW_TAKE(V, PW_ARRAYS > 3, d, k), s)

/* Clang addresses all arrays by one index. Intel's processors then split each instruction with a memory operand, and
 * keep stores off the third address unit: 1.2 times the time of an update in L1. An opaque pointer stays a pointer. */
#if defined(__clang__)
#define PW_BASE(pointer, used)                                                                                                  \
    do {                                                                                                                        \
        if (used) __asm__("" : "+r"(pointer));                                                                                  \
    } while (0)
#else
#define PW_BASE(pointer, used) (void)0
#endif

/* The vector is needed: passes before the last compute their sums completely, although only those of the last are combined.
 * Only aarch64 has registers for vectors of 64 bits; GCC uses those of 128 on x86, Clang none. */
#if defined(__aarch64__)
#define PW_NO_HALVES 0
#else
#define PW_NO_HALVES 1
#endif
#define PW_KEEP(v, lanes)                                                                                                       \
    do {                                                                                                                        \
        if ((lanes) == 1)                                                                                                       \
            __asm__ volatile("" : PW_IN_ONE(v)::"memory");                                                                      \
        else if (PW_NO_HALVES && sizeof(v) == 8)                                                                                \
            __asm__ volatile("" : "+m"(v)::"memory");                                                                           \
        else                                                                                                                    \
            PW_OPAQUE(v);                                                                                                       \
    } while (0)

/* Vectors of a group: as many as the processor needs sums, or eight. */
#if defined(PW_REDUCES)
#define PW_GROUPED PW_SUMS
enum { pw_outputs = 0 };
#else
#define PW_GROUPED 8
enum { pw_outputs = 1 };
#endif
#else
#define PW_GROUPED (PW_LINE_BYTES / PW_VECTOR_BYTES)
#endif
/* Sums of 16-bit floats need a wider sum: reductions do not support them. Without the processor's own arithmetic, compilers emulate
 * it element by element: GCC 12 then compiles many streams for minutes. */
#if defined(PW_ELEMENT) && !defined(PW_REDUCES)
#if defined(PW_HAS_FP16)
#define PW_WITH_FP16
#endif
#if defined(PW_HAS_BF16)
#define PW_WITH_BF16
#endif
#elif defined(PW_WORK) && defined(PW_HAS_FP16) && (defined(__AVX512FP16__) || defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC))
#define PW_WITH_FP16
#endif

/* PW_SIGNED is the type of the elements, PW_T the one that computes. Sums, and results of any equation, may exceed an integer's
 * range: they are defined to wrap around, as unsigned integers do. Sums of int64 have all widths too: they add without the clock
 * reduction of wide floating-point arithmetic. */
#if defined(PW_ELEMENT)
#define PW_INTEGER(bits) uint##bits##_t
#else
#define PW_INTEGER(bits) int##bits##_t
#endif
#define PW_COUNT PW_GROUPED
#define PW_TYPE fp64
#define PW_T double
#define PW_SIGNED double
#if defined(PW_ELEMENT)
#define PW_EVERY_WIDTH
#define PW_SCALARS
#endif
#include "pw_stream_type.h"
#define PW_TYPE fp32
#define PW_T float
#define PW_SIGNED float
#include "pw_stream_type.h"
#define PW_WRAPS
#define PW_TYPE int64
#define PW_T PW_INTEGER(64)
#define PW_SIGNED int64_t
#if defined(PW_REDUCES)
#define PW_EVERY_WIDTH
#endif
#include "pw_stream_type.h"
#define PW_TYPE int32
#define PW_T PW_INTEGER(32)
#define PW_SIGNED int32_t
#include "pw_stream_type.h"
#define PW_TYPE int16
#define PW_T PW_INTEGER(16)
#define PW_SIGNED int16_t
#include "pw_stream_type.h"
#define PW_TYPE int8
#define PW_T PW_INTEGER(8)
#define PW_SIGNED int8_t
#include "pw_stream_type.h"
#undef PW_WRAPS
#undef PW_COUNT
#define PW_COUNT 2
#if defined(PW_WITH_FP16)
#define PW_TYPE fp16
#define PW_T pw_half
#define PW_SIGNED pw_half
#include "pw_stream_type.h"
#endif
#if defined(PW_WITH_BF16)
#define PW_TYPE bf16
#define PW_T pw_brain
#define PW_SIGNED pw_brain
#include "pw_stream_type.h"
#endif

#if defined(PW_LOOP_COMPILER)
#if defined(PW_REDUCES)
double pw_loop(PW_LOOP_PARAMETERS);
#define PW_LOOP_DO call->sum = pw_loop
#else
void pw_loop(PW_LOOP_PARAMETERS);
#define PW_LOOP_DO pw_loop
#endif

/* fp64 in the plain loop. */
static void pw_fp64_loop(struct pw_stream_call *call)
{
    double s = call->scalar;
    for (int64_t pass = 0; pass < call->passes; pass++) {
        PW_LOOP_DO(PW_LOOP_ARGUMENTS);
        s = PW_NEXT(s);
        pw_pass_ends();
    }
}
#endif

int32_t pw_stream_run(struct pw_stream_call *call)
{
#if defined(PW_LOOP_COMPILER)
    if (call->type == PW_FP64 && call->simd == PW_SIMD_COMPILER) return pw_fp64_loop(call), PW_STREAM_OK;
#endif
    switch (call->type) {
    case PW_FP64: return pw_fp64_of_width(call);
    case PW_FP32: return pw_fp32_of_width(call);
#if defined(PW_WITH_FP16)
    case PW_FP16: return pw_fp16_of_width(call);
#endif
#if defined(PW_WITH_BF16)
    case PW_BF16: return pw_bf16_of_width(call);
#endif
    case PW_INT64: return pw_int64_of_width(call);
    case PW_INT32: return pw_int32_of_width(call);
    case PW_INT16: return pw_int16_of_width(call);
    case PW_INT8: return pw_int8_of_width(call);
    default: return PW_STREAM_NO_TYPE;
    }
}
#endif
#endif
