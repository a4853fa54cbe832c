/* Explicit vectors, non-temporal stores and prefetches, for both GCC and Clang.
 *
 * The width follows the instruction set but stays at 256 bits on x86 unless PW_VECTOR_BITS requests more, as for
 * loops that the compilers vectorise (-mprefer-vector-width in the toolchain). At 64 bits, simd=scalar, a vector is one
 * double; RISC-V's vectors have no fixed length, and here it has none. */
#ifndef PAGEWISE_VECTOR_H
#define PAGEWISE_VECTOR_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && !defined(__clang__)
#include <immintrin.h> /* clang has builtins for all that is needed here, and takes long to read this header */
#endif

/* SVE vectors of a width that the build's flags fix (-msve-vector-bits); otherwise explicit vectors are NEON's. */
#if defined(__ARM_FEATURE_SVE_BITS) && __ARM_FEATURE_SVE_BITS == 512
#define PW_SVE_BYTES 64
#elif defined(__ARM_FEATURE_SVE_BITS) && __ARM_FEATURE_SVE_BITS == 256
#define PW_SVE_BYTES 32
#endif
#if defined(PW_SVE_BYTES) && !defined(__clang__)
#include <arm_sve.h>
#endif

#ifndef PW_VECTOR_BITS
#define PW_VECTOR_BITS 256
#endif

#if PW_VECTOR_BITS == 64 || defined(__riscv)
#define PW_VECTOR_BYTES 8
#elif defined(__AVX512F__) && PW_VECTOR_BITS >= 512
#define PW_VECTOR_BYTES 64
#elif defined(__AVX__) && PW_VECTOR_BITS >= 256
#define PW_VECTOR_BYTES 32
#elif defined(PW_SVE_BYTES)
#define PW_VECTOR_BYTES PW_SVE_BYTES
#else
#define PW_VECTOR_BYTES 16
#endif

/* The widths that the instruction set supports. */
#if defined(__AVX__) || (defined(PW_SVE_BYTES) && PW_SVE_BYTES == 32)
#define PW_HAS_256
#endif
#if defined(__AVX512F__) || (defined(PW_SVE_BYTES) && PW_SVE_BYTES == 64)
#define PW_HAS_512
#endif

/* Bytes of a cache line: the unit of prefetch distances. In Fortran it is line_bytes of pw_line. */
#ifndef PW_LINE_BYTES
#error "PW_LINE_BYTES comes from CMake (PAGEWISE_LINE_BYTES)"
#endif

#define PW_INLINE static inline __attribute__((always_inline))

enum {
    pw_line_doubles = PW_LINE_BYTES / 8,
    pw_vector_doubles = PW_VECTOR_BYTES / 8,
    pw_line_vectors = PW_LINE_BYTES / PW_VECTOR_BYTES
};

/* A vector of one double is that double: GCC keeps vectors of 64 bits in memory, and Clang has no register for them. */
#if PW_VECTOR_BYTES == 8
typedef double pw_vector;
typedef double pw_unaligned;
#define PW_SET_LANE(v, lane, x) ((void)(lane), (v) = (x))
#else
typedef double pw_vector __attribute__((vector_size(PW_VECTOR_BYTES)));
typedef double pw_unaligned __attribute__((vector_size(PW_VECTOR_BYTES), aligned(8)));
#define PW_SET_LANE(v, lane, x) ((v)[lane] = (x))
#endif

/* The type of one element if a vector has only one. */
#define PW_ONE_OR(one, vector, bytes) __typeof__(__builtin_choose_expr((bytes) == sizeof(one), *(one *)0, *(vector *)0))

PW_INLINE pw_vector pw_load(const double *p)
{
    return *(const pw_unaligned *)p;
}

/* Regular store. */
PW_INLINE void pw_store(double *p, pw_vector v)
{
    *(pw_unaligned *)p = v;
}

/* Vectors of so many bytes that one non-temporal store writes: stnp of aarch64 stores a pair of registers. */
#if defined(__aarch64__)
#define PW_TOGETHER(bytes) ((bytes) <= 16 ? 2 : 1)
#else
#define PW_TOGETHER(bytes) 1
#endif

/* Non-temporal store of v, an array of PW_TOGETHER(bytes) vectors of any type V and this many bytes, to p, which is aligned
 * to them; a statement. Call pw_stream_fence before other threads read. PagewiseVariants.cmake offers stores=nontemporal
 * only for processors that have such stores; elsewhere the regular store below is in no program. */
#define PW_STREAM_BYTES(V, bytes, p, v) PW_STREAM_(bytes)(V, p, v)
#define PW_STREAM_(bytes) PW_STREAM_##bytes
#if defined(__clang__)
#define PW_STREAM_ONE(V, p, v) __builtin_nontemporal_store((v)[0], (V *)(p))
#else
#define PW_STREAM_ONE(V, p, v) (void)(*(V *)(p) = (v)[0])
#endif

#if defined(__aarch64__)
#define PW_STREAM_8(V, p, v) __asm__ volatile("stnp %d1, %d2, %0" : "=Q"(*(V(*)[2])(p)) : "w"((v)[0]), "w"((v)[1]))
#define PW_STREAM_16(V, p, v) __asm__ volatile("stnp %q1, %q2, %0" : "=Q"(*(V(*)[2])(p)) : "w"((v)[0]), "w"((v)[1]))
#elif defined(__x86_64__)
/* As a whole number: x86 has no such store of a double, and Clang would use a regular one. */
#define PW_STREAM_8(V, p, v)                                                    \
    do {                                                                        \
        int64_t pw_bits;                                                        \
        __builtin_memcpy(&pw_bits, (v), sizeof pw_bits);                        \
        __asm__ volatile("movnti %1, %0" : "=m"(*(V *)(p)) : "r"(pw_bits));     \
    } while (0)
#else
#define PW_STREAM_8 PW_STREAM_ONE
#endif

#if defined(__x86_64__) && !defined(__clang__)
#define PW_STREAM_16(V, p, v) _mm_stream_si128((__m128i *)(p), (__m128i)(v)[0])
#define PW_STREAM_32(V, p, v) _mm256_stream_si256((__m256i *)(p), (__m256i)(v)[0])
#define PW_STREAM_64(V, p, v) _mm512_stream_si512((__m512i *)(p), (__m512i)(v)[0])
#elif defined(PW_SVE_BYTES) && !defined(__clang__)
#define PW_STREAM_32(V, p, v) svstnt1_f64(svptrue_b64(), (double *)(p), (pw_vector)(v)[0])
#define PW_STREAM_64 PW_STREAM_32
#else
#if !defined(PW_STREAM_16)
#define PW_STREAM_16 PW_STREAM_ONE
#endif
#define PW_STREAM_32 PW_STREAM_ONE
#define PW_STREAM_64 PW_STREAM_ONE
#endif

/* Store the vectors of a cache line of doubles, regularly; and by non-temporal stores, which fill the line in succession. */
PW_INLINE void pw_store_line(double *p, const pw_vector *v)
{
    for (int k = 0; k < pw_line_vectors; k++) pw_store(p + k * pw_vector_doubles, v[k]);
}

PW_INLINE void pw_stream_line(double *p, const pw_vector *v)
{
    for (int k = 0; k < pw_line_vectors; k += PW_TOGETHER(PW_VECTOR_BYTES))
        PW_STREAM_BYTES(pw_vector, PW_VECTOR_BYTES, p + k * pw_vector_doubles, v + k);
}

/* Order non-temporal stores before everything that follows. */
PW_INLINE void pw_stream_fence(void)
{
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* Prefetch the line of p, for reading or for writing, into the first- or the second-level cache: PRFM PLDL1KEEP, PSTL1KEEP,
 * PLDL2KEEP and PSTL2KEEP of aarch64; prefetcht0 and prefetcht1 of x86-64, whose prefetchw has no level. */
PW_INLINE void pw_prefetch_read(const void *p)
{
    __builtin_prefetch(p, 0, 3);
}

PW_INLINE void pw_prefetch_write(const void *p)
{
    __builtin_prefetch(p, 1, 3);
}

PW_INLINE void pw_prefetch_read_l2(const void *p)
{
    __builtin_prefetch(p, 0, 2);
}

PW_INLINE void pw_prefetch_write_l2(const void *p)
{
    __builtin_prefetch(p, 1, 2);
}

/* Read the word at p and discard it: loads its line into the first-level cache. */
PW_INLINE void pw_preload(const void *p)
{
    (void)*(const volatile int64_t *)p;
}

#endif
