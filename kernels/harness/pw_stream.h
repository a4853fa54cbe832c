/* The timed code of a streaming kernel: loops over arrays of any type, generated from one expression.
 *
 * A kernel defines, and then includes this file:
 *   PW_ARRAYS             the number of the arrays a, b, c, d that it uses
 *   PW_READS              which of them it reads: PW_A | PW_B ...
 *   PW_ELEMENT(a, b, c, d, s)   the value stored in a(i) or, with PW_REDUCES, added to the sum; for scalars and vectors
 *   PW_REDUCES            it returns a sum and stores nothing
 *   PW_FLIPS              the sign of the scalar changes after every pass, so that a does not grow
 *   PW_BROKEN             skip the last element: for the test that validation detects it
 * The macros PW_PREFETCH_..., PW_STORES_... set the build's variant. In the plain variant, the loop over fp64 is the Fortran
 * compiler's: pw_loop in kernel_hardware_regular.f90. All others are explicit vector code: compilers drop or break
 * non-temporal stores and prefetches in Fortran. */
#ifndef PAGEWISE_STREAM_H
#define PAGEWISE_STREAM_H

#include "pw_stream_call.h"
#include "pw_widths.h"
#include "pw_zero.h"

enum { PW_A = 1, PW_B = 2, PW_C = 4, PW_D = 8 };

#if (defined(PW_PREFETCH_HARDWARE) || defined(PW_PREFETCH_COMPILER)) && defined(PW_STORES_REGULAR) && !defined(PW_BROKEN)
#define PW_FORTRAN_LOOP
#endif
#if defined(PW_STORES_NONTEMPORAL) && !defined(PW_REDUCES)
#define PW_PAST_CACHES 1
#else
#define PW_PAST_CACHES 0
#endif
#if defined(PW_REDUCES)
#define PW_SUMS 1
#else
#define PW_SUMS 0
#endif
#if defined(PW_STORES_ZFILL) && !defined(PW_REDUCES)
#define PW_ZEROES 1
#else
#define PW_ZEROES 0
#endif
#if defined(PW_BROKEN)
#define PW_LEFT_OUT 1
#else
#define PW_LEFT_OUT 0
#endif

/* Between passes: all stores must be done, and no loaded value may be kept. */
#define PW_PASS_ENDS()                                                                                                          \
    do {                                                                                                                        \
        if (PW_PAST_CACHES) pw_stream_fence();                                                                                  \
        __asm__ volatile("" ::: "memory");                                                                                      \
    } while (0)

/* Vectors of a group: sums use more if there are 32 registers; two additions per cycle of latency 4 need 8 sums at least. */
#if defined(PW_REDUCES) && (defined(__AVX512VL__) || defined(__aarch64__))
#define PW_VECTORS(unroll) (2 * (unroll))
#else
#define PW_VECTORS(unroll) (unroll)
#endif

/* The vector is needed: passes before the last compute their sums completely, although only those of the last are combined.
 * Clang has no register for vectors of 64 bits. */
#if defined(__x86_64__)
#define PW_KEEP(v, lanes)                                                                                                       \
    do {                                                                                                                        \
        if ((lanes) == 1)                                                                                                       \
            __asm__ volatile("" : "+rv"(v)::"memory");                                                                          \
        else if (sizeof(v) > 8)                                                                                                 \
            __asm__ volatile("" : "+v"(v)::"memory");                                                                           \
        else                                                                                                                    \
            __asm__ volatile("" : "+m"(v)::"memory");                                                                           \
    } while (0)
#else
#define PW_KEEP(v, lanes)                                                                                                       \
    do {                                                                                                                        \
        PW_OPAQUE(v);                                                                                                           \
        __asm__ volatile("" ::: "memory");                                                                                      \
    } while (0)
#endif

#if defined(PW_FLIPS)
#define PW_NEXT(s) (-(s))
#else
#define PW_NEXT(s) (s)
#endif

/* Each line of the inputs that lies `ahead` bytes ahead, and of a if it is written by regular stores. */
PW_INLINE void pw_ask(int64_t ahead, const char *a, const char *b, const char *c, const char *d)
{
#if defined(PW_PREFETCH_SOFTWARE)
#if !defined(PW_REDUCES)
    if (!PW_PAST_CACHES) pw_prefetch_write(a + ahead);
    else if (PW_READS & PW_A) pw_prefetch_read(a + ahead);
#else
    if (PW_READS & PW_A) pw_prefetch_read(a + ahead);
#endif
    if (PW_READS & PW_B) pw_prefetch_read(b + ahead);
    if (PW_READS & PW_C) pw_prefetch_read(c + ahead);
    if (PW_READS & PW_D) pw_prefetch_read(d + ahead);
#else
    (void)ahead, (void)a, (void)b, (void)c, (void)d;
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

/* The vector at element k of an array that the kernel reads. */
#define PW_TAKE(V, which, p, k) (PW_READS & (which) ? *(const V *)((p) + (k)) : (V){0})

/* The work of one vector, k elements from ai, bi, ci, di, or of one element, in the two kinds of kernels. */
#if defined(PW_REDUCES)
#define PW_WORK(V, put, k, u)                                                                                                   \
    sum[u] += PW_ELEMENT(PW_TAKE(V, PW_A, ai, k), PW_TAKE(V, PW_B, bi, k), PW_TAKE(V, PW_C, ci, k), PW_TAKE(V, PW_D, di, k),    \
                         every_s)
#define PW_SCALAR_WORK(T, k)                                                                                                    \
    rest = (T)(rest + (T)PW_ELEMENT(PW_TAKE(T, PW_A, a, k), PW_TAKE(T, PW_B, b, k), PW_TAKE(T, PW_C, c, k),                     \
                                    PW_TAKE(T, PW_D, d, k), s))
#else
#define PW_WORK(V, put, k, u)                                                                                                   \
    put(ai + (k), PW_ELEMENT(PW_TAKE(V, PW_A, ai, k), PW_TAKE(V, PW_B, bi, k), PW_TAKE(V, PW_C, ci, k),                         \
                             PW_TAKE(V, PW_D, di, k), every_s))
#define PW_SCALAR_WORK(T, k)                                                                                                    \
    a[k] = (T)PW_ELEMENT(PW_TAKE(T, PW_A, a, k), PW_TAKE(T, PW_B, b, k), PW_TAKE(T, PW_C, c, k), PW_TAKE(T, PW_D, d, k), s)
#endif

/* The type of one element if a vector has only one. */
#define PW_ONE_OR(one, vector, bytes) __typeof__(__builtin_choose_expr((bytes) == sizeof(one), *(one *)0, *(vector *)0))

/* The function `name` for elements of T in vectors of `bytes` bytes: whole groups of vectors between a scalar head, up to
 * a line of a, and a scalar tail. Sums use this many vectors, to hide the latency of the addition. */
#define PW_DEFINE_STREAM(name, T, bytes, unroll, width_attribute)                                                                       \
    typedef T name##_one __attribute__((may_alias));                                                                            \
    typedef T name##_many __attribute__((vector_size(bytes), may_alias));                                                       \
    typedef T name##_any __attribute__((vector_size(bytes), aligned(sizeof(T)), may_alias));                                    \
    typedef PW_ONE_OR(name##_one, name##_many, bytes) name##_aligned;                                                           \
    typedef PW_ONE_OR(name##_one, name##_any, bytes) name##_vector;                                                             \
    PW_INLINE width_attribute void name##_put(T *p, name##_vector v)                                                            \
    {                                                                                                                           \
        if (PW_PAST_CACHES)                                                                                                     \
            PW_STREAM_BYTES(name##_aligned, bytes, p, v);                                                                       \
        else                                                                                                                    \
            *(name##_vector *)p = v;                                                                                            \
    }                                                                                                                           \
    static width_attribute void name(struct pw_stream_call *call)                                                               \
    {                                                                                                                           \
        enum { lanes = (bytes) / sizeof(T), vectors = PW_VECTORS(unroll), group = lanes * vectors, line = PW_LINE_BYTES / sizeof(T) };           \
        T *restrict const a = call->array[0];                                                                                   \
        const T *restrict const b = call->array[1];                                                                             \
        const T *restrict const c = call->array[2];                                                                             \
        const T *restrict const d = call->array[3];                                                                             \
        T s = PW_NARROWED(T, call->scalar);                                                                                     \
        const int64_t n = call->elements - PW_LEFT_OUT;                                                                         \
        const int64_t to_line = (int64_t)((0 - (uintptr_t)a) % PW_LINE_BYTES / sizeof(T));                                      \
        const int64_t head = to_line < n ? to_line : n;                                                                         \
        const int64_t block = PW_BLOCK(call->block / (int64_t)sizeof(T), n - head, line);                                       \
        const int64_t ahead = call->distance;                                                                                   \
        T lane[lanes];                                                                                                          \
        for (int l = 0; l < (int)lanes; l++) lane[l] = s;                                                                       \
        name##_vector every_s = *(const name##_vector *)lane;                                                                   \
        (void)b, (void)c, (void)d;                                                                                              \
        for (int64_t pass = 0; pass < call->passes; pass++) {                                                                   \
            name##_vector sum[vectors];                                                                                         \
            for (int u = 0; u < vectors; u++) sum[u] = (name##_vector){0};                                                      \
            T rest = 0;                                                                                                         \
            int64_t i = head;                                                                                                   \
            struct pw_zeroing zero = pw_zero_begin(a + head, PW_ZEROES ? n - head : 0, sizeof(T), call->zero_distance);            \
            for (int64_t k = 0; k < head; k++) PW_SCALAR_WORK(T, k);                                                            \
            for (int64_t first = head; first < n; first += block) {                                                             \
                const int64_t end = first + block < n ? first + block : n;                                                      \
                PW_BRING(first, end, sizeof(T));                                                                                \
                const int64_t last_group = end - group;                                                                         \
                for (i = first; i <= last_group; i += group) {                                                                  \
                    for (int l = 0; l < group; l += line)                                                                       \
                        pw_ask(ahead, (const char *)(a + i + l), (const char *)(b + i + l), (const char *)(c + i + l),          \
                               (const char *)(d + i + l));                                                                      \
                    T *ai = a + i;                                                                                              \
                    const T *bi = b + i, *ci = c + i, *di = d + i;                                                              \
                    pw_zero_until(&zero, a + i + group);                                                                        \
                    PW_BASE(ai, 1);                                                                                             \
                    PW_BASE(bi, PW_READS & PW_B);                                                                               \
                    PW_BASE(ci, PW_READS & PW_C);                                                                               \
                    PW_BASE(di, PW_READS & PW_D);                                                                               \
                    (void)bi, (void)ci, (void)di;                                                                               \
                    PW_UNROLL                                                                                                   \
                    for (int u = 0; u < vectors; u++) PW_WORK(name##_vector, name##_put, u * (int)lanes, u);                    \
                }                                                                                                               \
                pw_zero_skip(&zero, a + end);                                                                                   \
                for (int64_t k = i; k < end; k++) PW_SCALAR_WORK(T, k);                                                         \
            }                                                                                                                   \
            if (PW_SUMS) {                                                                                                      \
                for (int u = 0; u < vectors; u++) PW_KEEP(sum[u], lanes);                                                       \
                if (pass + 1 < call->passes) continue;                                                                          \
                for (int u = 1; u < vectors; u++) sum[0] += sum[u];                                                             \
                *(name##_vector *)lane = sum[0];                                                                                \
                for (int l = 0; l < (int)lanes; l++) rest = (T)(rest + lane[l]);                                                \
                call->sum = (double)rest;                                                                                       \
            }                                                                                                                   \
            s = (T)PW_NEXT(s);                                                                                                  \
            every_s = PW_NEXT(every_s);                                                                                         \
            PW_PASS_ENDS();                                                                                                     \
        }                                                                                                                       \
    }

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

/* Every width for a type, and the selection of the requested one. */
#define PW_DEFINE_WIDTHS(name, T)                                                                                               \
    PW_IF_SCALAR(PW_DEFINE_STREAM(name##_8, T, 8, 8, ))                                                                         \
    PW_DEFINE_STREAM(name##_16, T, 16, 8, )                                                                                     \
    PW_IF_256(PW_DEFINE_STREAM(name##_32, T, 32, 8, ))                                                                          \
    PW_IF_512(PW_DEFINE_STREAM(name##_64, T, 64, 8, PW_WIDE))                                                                   \
    static int32_t name##_of_width(struct pw_stream_call *call)                                                                 \
    {                                                                                                                           \
        switch (call->simd) {                                                                                                   \
            PW_IF_SCALAR(case PW_SIMD_SCALAR : return name##_8(call), PW_STREAM_OK;)                                            \
        case PW_SIMD_128: return name##_16(call), PW_STREAM_OK;                                                                 \
            PW_IF_256(case PW_SIMD_256 : return name##_32(call), PW_STREAM_OK;)                                                 \
            PW_IF_512(case PW_SIMD_512 : return name##_64(call), PW_STREAM_OK;)                                                 \
        default: return PW_STREAM_NO_SIMD;                                                                                      \
        }                                                                                                                       \
    }

PW_DEFINE_WIDTHS(pw_fp64, double)
/* Sums of int64 support all widths too: they add without the clock reduction of wide floating-point arithmetic. */
#if defined(PW_REDUCES)
PW_DEFINE_WIDTHS(pw_int64, int64_t)
#else
PW_DEFINE_STREAM(pw_int64, int64_t, PW_VECTOR_BYTES, 8, )
#endif
PW_DEFINE_STREAM(pw_fp32, float, PW_VECTOR_BYTES, 8, )
PW_DEFINE_STREAM(pw_int32, int32_t, PW_VECTOR_BYTES, 8, )
PW_DEFINE_STREAM(pw_int16, int16_t, PW_VECTOR_BYTES, 8, )
PW_DEFINE_STREAM(pw_int8, int8_t, PW_VECTOR_BYTES, 8, )
/* Sums of 16-bit floats need a wider sum: reductions do not support them. */
#if defined(PW_HAS_FP16) && !defined(PW_REDUCES)
PW_DEFINE_STREAM(pw_fp16, pw_half, PW_VECTOR_BYTES, 2, )
#endif
#if defined(PW_HAS_BF16) && !defined(PW_REDUCES)
PW_DEFINE_STREAM(pw_bf16, pw_brain, PW_VECTOR_BYTES, 2, )
#endif

/* fp64 without vectors. */
PW_NO_VECTORS static void pw_fp64_scalar(struct pw_stream_call *call)
{
    double *restrict const a = call->array[0];
    const double *restrict const b = call->array[1];
    const double *restrict const c = call->array[2];
    const double *restrict const d = call->array[3];
    double s = call->scalar;
    const int64_t n = call->elements - PW_LEFT_OUT;
    const int64_t block = PW_BLOCK(call->block / 8, n, pw_line_doubles);
    (void)b, (void)c, (void)d;
    for (int64_t pass = 0; pass < call->passes; pass++) {
        double rest = 0;
        struct pw_zeroing zero = pw_zero_begin(a, PW_ZEROES ? n : 0, sizeof *a, call->zero_distance);
        for (int64_t first = 0; first < n; first += block) {
            const int64_t end = first + block < n ? first + block : n;
            PW_BRING(first, end, sizeof(double));
            PW_SCALAR_LOOP
            for (int64_t k = first; k < end; k++) {
                if (PW_ZEROES && k % pw_line_doubles == 0) pw_zero_until(&zero, a + k + pw_line_doubles);
#if defined(PW_PREFETCH_SOFTWARE)
                if (k % pw_line_doubles == 0)
                    pw_ask(call->distance, (const char *)(a + k), (const char *)(b + k), (const char *)(c + k),
                           (const char *)(d + k));
#endif
#if defined(PW_REDUCES)
                PW_SCALAR_WORK(double, k);
#else
                const double v = PW_ELEMENT(PW_TAKE(double, PW_A, a, k), PW_TAKE(double, PW_B, b, k),
                                            PW_TAKE(double, PW_C, c, k), PW_TAKE(double, PW_D, d, k), s);
                if (PW_PAST_CACHES)
                    pw_stream_double(a + k, v);
                else
                    a[k] = v;
#endif
            }
        }
        call->sum = rest;
        s = PW_NEXT(s);
        PW_PASS_ENDS();
    }
}

#if defined(PW_FORTRAN_LOOP)
/* The Fortran compiler's loop: the arrays of the kernel, and the scalar. */
#if defined(PW_REDUCES) && PW_ARRAYS == 1
double pw_loop(int64_t n, const double *a);
#define PW_LOOP(s) call->sum = pw_loop(n, array[0])
#elif defined(PW_REDUCES)
double pw_loop(int64_t n, const double *a, const double *b);
#define PW_LOOP(s) call->sum = pw_loop(n, array[0], array[1])
#elif PW_ARRAYS == 1
void pw_loop(int64_t n, double *a, double s);
#define PW_LOOP(s) pw_loop(n, array[0], s)
#elif PW_ARRAYS == 2
void pw_loop(int64_t n, double *a, const double *b, double s);
#define PW_LOOP(s) pw_loop(n, array[0], array[1], s)
#elif PW_ARRAYS == 3
void pw_loop(int64_t n, double *a, const double *b, const double *c, double s);
#define PW_LOOP(s) pw_loop(n, array[0], array[1], array[2], s)
#else
void pw_loop(int64_t n, double *a, const double *b, const double *c, const double *d, double s);
#define PW_LOOP(s) pw_loop(n, array[0], array[1], array[2], array[3], s)
#endif

static void pw_fp64_fortran(struct pw_stream_call *call)
{
    void *const *array = call->array;
    const int64_t n = call->elements;
    double s = call->scalar;
    for (int64_t pass = 0; pass < call->passes; pass++) {
        PW_LOOP(s);
        s = PW_NEXT(s);
        PW_PASS_ENDS();
    }
}
#endif

static int32_t pw_stream_fp64(struct pw_stream_call *call)
{
#if defined(PW_FORTRAN_LOOP)
    if (call->simd == PW_SIMD_COMPILER) return pw_fp64_fortran(call), PW_STREAM_OK;
#else
    if (call->simd == PW_SIMD_COMPILER) call->simd = PW_BUILD_SIMD;
#endif
    if (call->simd == PW_SIMD_SCALAR) return pw_fp64_scalar(call), PW_STREAM_OK;
    return pw_fp64_of_width(call);
}

static int32_t pw_stream_int64(struct pw_stream_call *call)
{
#if defined(PW_REDUCES)
    if (call->simd == PW_SIMD_COMPILER) call->simd = PW_BUILD_SIMD;
    return pw_int64_of_width(call);
#else
    if (call->simd != PW_SIMD_COMPILER) return PW_STREAM_NO_SIMD;
    return pw_int64(call), PW_STREAM_OK;
#endif
}

int32_t pw_stream_run(struct pw_stream_call *call)
{
    if (call->type == PW_FP64) return pw_stream_fp64(call);
    if (call->type == PW_INT64) return pw_stream_int64(call);
    if (call->simd != PW_SIMD_COMPILER) return PW_STREAM_NO_SIMD;
    switch (call->type) {
    case PW_FP32: return pw_fp32(call), PW_STREAM_OK;
    case PW_INT32: return pw_int32(call), PW_STREAM_OK;
    case PW_INT16: return pw_int16(call), PW_STREAM_OK;
    case PW_INT8: return pw_int8(call), PW_STREAM_OK;
#if defined(PW_HAS_FP16) && !defined(PW_REDUCES)
    case PW_FP16: return pw_fp16(call), PW_STREAM_OK;
#endif
#if defined(PW_HAS_BF16) && !defined(PW_REDUCES)
    case PW_BF16: return pw_bf16(call), PW_STREAM_OK;
#endif
    default: return PW_STREAM_NO_TYPE;
    }
}

#endif
