/* SIMD widths selected at run time, and the pragmas of loops of a certain width. */
#ifndef PAGEWISE_WIDTHS_H
#define PAGEWISE_WIDTHS_H

#include "pw_simd.h"
#include "pw_vector.h"

#if defined(__clang__)
#define PW_UNROLL _Pragma("clang loop unroll(full)")
#define PW_NO_UNROLL _Pragma("clang loop unroll(disable)")
#define PW_WIDE __attribute__((min_vector_width(512)))
#else
#define PW_UNROLL _Pragma("GCC unroll 20")
#define PW_NO_UNROLL _Pragma("GCC unroll 1")
#define PW_WIDE
#endif

#if defined(PW_HAS_256)
#define PW_IF_256(...) __VA_ARGS__
#else
#define PW_IF_256(...)
#endif
#if defined(PW_HAS_512)
#define PW_IF_512(...) __VA_ARGS__
#else
#define PW_IF_512(...)
#endif

/* The name `what` of a type and a width. */
#define PW_JOINED(type, width, label) PW_JOINED_(type, width, label)
#define PW_JOINED_(type, width, label) pw_##type##_##width##_##label

/* Return RUN(width) of the width `simd`, if the build has it; a statement. */
#define PW_RETURN_OF_WIDTH(simd, RUN)                                                                                           \
    switch (simd) {                                                                                                             \
    case PW_SIMD_SCALAR: return RUN(scalar);                                                                                    \
    case PW_SIMD_128: return RUN(128);                                                                                          \
        PW_IF_256(case PW_SIMD_256 : return RUN(256);)                                                                          \
        PW_IF_512(case PW_SIMD_512 : return RUN(512);)                                                                          \
    default: break;                                                                                                             \
    }

#if PW_VECTOR_BYTES == 8
#define PW_BUILD_SIMD PW_SIMD_SCALAR
#elif PW_VECTOR_BYTES == 64
#define PW_BUILD_SIMD PW_SIMD_512
#elif PW_VECTOR_BYTES == 32
#define PW_BUILD_SIMD PW_SIMD_256
#else
#define PW_BUILD_SIMD PW_SIMD_128
#endif

/* The register of a double. */
#if defined(__x86_64__)
#define PW_IN_SCALAR "+x"
#elif defined(__aarch64__)
#define PW_IN_SCALAR "+w"
#elif defined(__powerpc64__)
#define PW_IN_SCALAR "+d"
#elif defined(__riscv)
#define PW_IN_SCALAR "+f"
#else
#define PW_IN_SCALAR "+m"
#endif

/* The registers of a vector, and of one element of any type. */
#if defined(__x86_64__)
#define PW_IN_VECTOR "+v"
#define PW_IN_ONE "+rv"
#elif defined(__aarch64__)
#define PW_IN_VECTOR "+w"
#define PW_IN_ONE "+rw"
#elif defined(__VSX__)
#define PW_IN_VECTOR "+wa"
#define PW_IN_ONE "+rwa"
#elif defined(__riscv)
#define PW_IN_VECTOR "+m"
#define PW_IN_ONE "+rf"
#else
#define PW_IN_VECTOR "+m"
#define PW_IN_ONE "+m"
#endif

/* The compiler must hold v in a register here, and cannot assume its value from here on: it neither omits, nor
 * regroups, nor folds computations before and after. */
#if defined(__clang__) && defined(PW_SVE_BYTES)
/* Clang holds SVE vectors in registers only as the processor's own types. */
#include <arm_sve.h>
typedef int8_t pw_sve_vector __attribute__((vector_size(PW_SVE_BYTES)));
#define PW_OPAQUE(v)                                       \
    do {                                                   \
        if (sizeof(v) == PW_SVE_BYTES) {                   \
            pw_sve_vector pw_all;                          \
            __builtin_memcpy(&pw_all, &(v), sizeof(v));    \
            svint8_t pw_one = pw_all;                      \
            __asm__ volatile("" : "+w"(pw_one));           \
            pw_all = pw_one;                               \
            __builtin_memcpy(&(v), &pw_all, sizeof(v));    \
        } else {                                           \
            __asm__ volatile("" : PW_IN_VECTOR(v));        \
        }                                                  \
    } while (0)
#elif defined(__riscv)
#define PW_OPAQUE(v)                                       \
    do {                                                   \
        if (sizeof(v) <= 8)                                \
            __asm__ volatile("" : PW_IN_ONE(v));           \
        else                                               \
            __asm__ volatile("" : PW_IN_VECTOR(v));        \
    } while (0)
#else
#define PW_OPAQUE(v) __asm__ volatile("" : PW_IN_VECTOR(v))
#endif

#endif
