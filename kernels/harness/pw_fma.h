/* Vectors of every width and type that a build has, and the operations of a fused multiply-add loop on them.
 *
 * For each NAME (fp64_scalar, fp64_128, ... fp32_vla) this defines the type NAME_vector, the number of its elements
 * NAME_lanes(), and NAME_load, NAME_store, NAME_every (all elements equal), NAME_hide (equal, but the compiler does not
 * know that) and NAME_fma (x*a + b). */
#ifndef PAGEWISE_FMA_H
#define PAGEWISE_FMA_H

#include "pw_widths.h"

#define PW_FMA_SCALAR(name, T)                                                                                                  \
    typedef T name##_vector;                                                                                                    \
    PW_INLINE int64_t name##_lanes(void) { return 1; }                                                                          \
    PW_INLINE T name##_load(const T *p) { return *p; }                                                                          \
    PW_INLINE void name##_store(T *p, T v) { *p = v; }                                                                          \
    PW_INLINE T name##_every(T s) { return s; }                                                                                 \
    PW_INLINE T name##_hide(T v) { PW_OPAQUE(v); return v; }                                                                    \
    PW_INLINE T name##_fma(T x, T a, T b) { return x * a + b; }

/* Written out: from a loop over elements GCC generates stores, and a load that waits for them. */
#define PW_TIMES_2(s) s, s
#define PW_TIMES_4(s) PW_TIMES_2(s), PW_TIMES_2(s)
#define PW_TIMES_8(s) PW_TIMES_4(s), PW_TIMES_4(s)
#define PW_TIMES_16(s) PW_TIMES_8(s), PW_TIMES_8(s)

#define PW_FMA_FIXED(name, T, lanes, width_attribute)                                                                           \
    typedef T name##_vector __attribute__((vector_size((lanes) * sizeof(T))));                                                  \
    typedef T name##_unaligned __attribute__((vector_size((lanes) * sizeof(T)), aligned(sizeof(T)), may_alias));                \
    PW_INLINE int64_t name##_lanes(void) { return lanes; }                                                                      \
    PW_INLINE width_attribute name##_vector name##_load(const T *p) { return *(const name##_unaligned *)p; }                    \
    PW_INLINE width_attribute void name##_store(T *p, name##_vector v) { *(name##_unaligned *)p = v; }                          \
    PW_INLINE width_attribute name##_vector name##_every(T s) { return (name##_vector){PW_TIMES_##lanes(s)}; }                  \
    PW_INLINE width_attribute name##_vector name##_hide(name##_vector v) { PW_OPAQUE(v); return v; }                            \
    PW_INLINE width_attribute name##_vector name##_fma(name##_vector x, name##_vector a, name##_vector b) { return x * a + b; }

PW_FMA_SCALAR(fp64_scalar, double)
PW_FMA_SCALAR(fp32_scalar, float)
PW_FMA_FIXED(fp64_128, double, 2, )
PW_FMA_FIXED(fp32_128, float, 4, )
PW_IF_256(PW_FMA_FIXED(fp64_256, double, 4, ))
PW_IF_256(PW_FMA_FIXED(fp32_256, float, 8, ))
PW_IF_512(PW_FMA_FIXED(fp64_512, double, 8, PW_WIDE))
PW_IF_512(PW_FMA_FIXED(fp32_512, float, 16, PW_WIDE))

#if defined(__ARM_FEATURE_SVE)
#include <arm_sve.h>
#define PW_FMA_SVE(name, T, V, bits, suffix, count)                                                                             \
    typedef V name##_vector;                                                                                                    \
    PW_INLINE int64_t name##_lanes(void) { return (int64_t)count(); }                                                           \
    PW_INLINE V name##_load(const T *p) { return svld1_##suffix(svptrue_b##bits(), p); }                                        \
    PW_INLINE void name##_store(T *p, V v) { svst1_##suffix(svptrue_b##bits(), p, v); }                                         \
    PW_INLINE V name##_every(T s) { return svdup_n_##suffix(s); }                                                               \
    PW_INLINE V name##_hide(V v) { __asm__ volatile("" : "+w"(v)); return v; }                                                  \
    PW_INLINE V name##_fma(V x, V a, V b) { return svmad_##suffix##_x(svptrue_b##bits(), x, a, b); }
PW_FMA_SVE(fp64_vla, double, svfloat64_t, 64, f64, svcntd)
PW_FMA_SVE(fp32_vla, float, svfloat32_t, 32, f32, svcntw)
#define PW_IF_VLA(...) __VA_ARGS__
#else
#define PW_IF_VLA(...)
#endif

#endif
