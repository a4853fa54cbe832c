/* The timed code of a streaming kernel: loops over arrays of any type, generated from one expression.
 *
 * pagewise_stream_kernel in PagewiseStreams.cmake writes a source per kernel, which defines and then includes this file:
 *   PW_ARRAYS             the number of the arrays a, b, c, d in the equation
 *   PW_READS              which of them it reads: bits 0 to 3
 *   PW_ELEMENT(a, b, c, d, s)   the value stored in a(i) or, with PW_REDUCES, added to the sum; for scalars and vectors
 *   PW_REDUCES            it returns a sum and stores nothing
 *   PW_FLIPS              the sign of the scalar changes after every pass, so that a does not grow
 *   PW_LOOP_PARAMETERS, PW_LOOP_ARGUMENTS   of pw_loop, the plain loop over fp64 in loop.f90
 * The macros PW_PREFETCH_..., PW_STORES_..., PW_LOOP_... set the build's variant. With PW_LOOP_COMPILER the loop over fp64 is
 * pw_loop. All others are explicit vector code: compilers drop or break non-temporal stores and prefetches in Fortran. */
#ifndef PAGEWISE_STREAM_H
#define PAGEWISE_STREAM_H

#include "pw_group.h"
#include "pw_prefetch.h"
#include "pw_stream_call.h"
#include "pw_widths.h"
#include "pw_zero.h"

enum { PW_A = 1, PW_B = 2, PW_C = 4, PW_D = 8 };

#if defined(PW_STORES_NONTEMPORAL) && !defined(PW_REDUCES)
#define PW_PAST_CACHES 1
#else
#define PW_PAST_CACHES 0
#endif
#if defined(PW_STORES_ZFILL) && !defined(PW_REDUCES)
#define PW_ZEROES 1
#else
#define PW_ZEROES 0
#endif

/* Between passes: all stores must be done, and no loaded value may be kept. */
PW_INLINE void pw_pass_ends(void)
{
    if (PW_PAST_CACHES) pw_stream_fence();
    __asm__ volatile("" ::: "memory");
}

/* Vectors of a group: as many as the processor needs sums, or eight. */
#if defined(PW_REDUCES)
#define PW_GROUPED PW_SUMS
#else
#define PW_GROUPED 8
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

#if defined(PW_FLIPS)
#define PW_NEXT(s) (-(s))
#else
#define PW_NEXT(s) (s)
#endif

/* Into a level: each line of the inputs that lies a distance ahead, and of a if it is written and then in the caches. What is
 * zeroed in L1 is not prefetched into L2. */
PW_INLINE void pw_ask_level(const struct pw_ahead *ahead, const int level, const int mode, const void *a, const void *b,
                            const void *c, const void *d)
{
#if defined(PW_REDUCES)
    const int writes = 0;
#else
    const int writes = !PW_PAST_CACHES;
#endif
    if (writes && !(PW_ZEROES && level == pw_l2)) pw_prefetch_at((const char *)a + ahead->written[level], level, 1, mode);
    if (PW_READS & PW_A && !writes) pw_prefetch_at((const char *)a + ahead->read[level], level, 0, mode);
    if (PW_READS & PW_B) pw_prefetch_at((const char *)b + ahead->read[level], level, 0, mode);
    if (PW_READS & PW_C) pw_prefetch_at((const char *)c + ahead->read[level], level, 0, mode);
    if (PW_READS & PW_D) pw_prefetch_at((const char *)d + ahead->read[level], level, 0, mode);
}

PW_INLINE void pw_ask(const struct pw_ahead *ahead, const int mode, const void *a, const void *b, const void *c, const void *d)
{
#if defined(PW_PREFETCH_SOFTWARE)
    pw_ask_level(ahead, pw_l1, mode, a, b, c, d);
    if (mode & PW_AHEAD_L2) pw_ask_level(ahead, pw_l2, mode, a, b, c, d);
#else
    (void)ahead, (void)mode, (void)a, (void)b, (void)c, (void)d;
#endif
}

PW_INLINE void pw_bring(const char *line, int by_prefetch)
{
    if (by_prefetch)
        pw_prefetch_read(line);
    else
        pw_preload(line);
}

/* Load bytes first to last of each input into the cache: one array after the other, since several streams at once load
 * worse (Hager et al. 2005, section 3.2), or all at once (fused). */
PW_INLINE void pw_bring_block(int64_t first, int64_t last, void *const *array, int fused, int by_prefetch)
{
    if (fused) {
        for (int64_t k = first; k < last; k += PW_LINE_BYTES)
            for (int j = 0; j < PW_ARRAYS; j++)
                if (PW_READS >> j & 1) pw_bring((const char *)array[j] + k, by_prefetch);
    } else {
        for (int j = 0; j < PW_ARRAYS; j++)
            if (PW_READS >> j & 1)
                for (int64_t k = first; k < last; k += PW_LINE_BYTES) pw_bring((const char *)array[j] + k, by_prefetch);
    }
}

/* The value from the vectors, or elements, of type V at element k of the arrays that the kernel reads. */
#define PW_TAKE(V, which, p, k) (PW_READS & (which) ? *(const V *)((p) + (k)) : (V){0})
#define PW_VALUE(V, k, s)                                                                                                       \
    PW_ELEMENT(PW_TAKE(V, PW_A, a, k), PW_TAKE(V, PW_B, b, k), PW_TAKE(V, PW_C, c, k), PW_TAKE(V, PW_D, d, k), s)

#define PW_JOINED(type, bytes, what) PW_JOINED_(type, bytes, what)
#define PW_JOINED_(type, bytes, what) pw_##type##_##bytes##_##what

#if defined(PW_PREFETCH_BLOCK)
#define PW_BLOCK(wanted, all, line) ((wanted) < (line) ? (line) : (wanted) / (line) * (line))
#define PW_BRING(first, end, size)                                                                                              \
    pw_bring_block((first) * (int64_t)(size), (end) * (int64_t)(size), call->array, call->fused, call->by_prefetch)
#else
#define PW_BLOCK(wanted, all, line) ((all) > 0 ? (all) : 1)
#define PW_BRING(first, end, size) (void)0
#endif

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

/* Sums of int64 have all widths too: they add without the clock reduction of wide floating-point arithmetic. */
#define PW_COUNT PW_GROUPED
#define PW_TYPE fp64
#define PW_T double
#define PW_EVERY_WIDTH
#define PW_SCALARS
#include "pw_stream_type.h"
#define PW_TYPE int64
#define PW_T int64_t
#if defined(PW_REDUCES)
#define PW_EVERY_WIDTH
#endif
#include "pw_stream_type.h"
#define PW_TYPE fp32
#define PW_T float
#include "pw_stream_type.h"
#define PW_TYPE int32
#define PW_T int32_t
#include "pw_stream_type.h"
#define PW_TYPE int16
#define PW_T int16_t
#include "pw_stream_type.h"
#define PW_TYPE int8
#define PW_T int8_t
#include "pw_stream_type.h"
/* Sums of 16-bit floats need a wider sum: reductions do not support them. */
#undef PW_COUNT
#define PW_COUNT 2
#if defined(PW_HAS_FP16) && !defined(PW_REDUCES)
#define PW_TYPE fp16
#define PW_T pw_half
#include "pw_stream_type.h"
#endif
#if defined(PW_HAS_BF16) && !defined(PW_REDUCES)
#define PW_TYPE bf16
#define PW_T pw_brain
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
#if defined(PW_HAS_FP16) && !defined(PW_REDUCES)
    case PW_FP16: return pw_fp16_of_width(call);
#endif
#if defined(PW_HAS_BF16) && !defined(PW_REDUCES)
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
