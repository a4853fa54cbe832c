/* Vectors processed at a time: as many as leave some of 32 or 16 registers free, written out. */
#ifndef PAGEWISE_GROUP_H
#define PAGEWISE_GROUP_H

/* DO(u, x) for each u from 0 on. */
#define PW_EIGHT(DO, x) DO(0, x) DO(1, x) DO(2, x) DO(3, x) DO(4, x) DO(5, x) DO(6, x) DO(7, x)
#define PW_TEN(DO, x) PW_EIGHT(DO, x) DO(8, x) DO(9, x)
#if defined(__AVX512VL__) || defined(__aarch64__) || defined(__VSX__)
#define PW_GROUP(DO, x)                                                                                                         \
    PW_TEN(DO, x)                                                                                                               \
    DO(10, x) DO(11, x) DO(12, x) DO(13, x) DO(14, x) DO(15, x) DO(16, x) DO(17, x) DO(18, x) DO(19, x)
enum { pw_group = 20 };
#else
#define PW_GROUP(DO, x) PW_TEN(DO, x)
enum { pw_group = 10 };
#endif

/* Sums of a reduction. Latency x pipes of additions and multiply-adds of doubles keep all pipes busy; whole cache lines of
 * vectors make a group.
 *
 * processor              latency x pipes   source
 * A64FX                  9 x 2             Fujitsu, A64FX Microarchitecture Manual: FADD, FMLA
 * Neoverse V1, V2        4 x 4             Arm, Neoverse V1 and V2 Core Software Optimization Guides: FMLA
 * POWER9                 7 x 2             OpenPOWER Foundation, POWER9 Processor User's Manual: VSX arithmetic
 * Skylake to Zen 5       4 x 2             A. Fog, Instruction tables: VADDPD, VFMADD; with 32 registers twice as many */
#if defined(__aarch64__)
#define PW_SUMS 20
#elif defined(__AVX512VL__) || defined(__VSX__)
#define PW_SUMS 16
#else
#define PW_SUMS 8
#endif

#endif
