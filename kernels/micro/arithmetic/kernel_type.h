/* Every width of one type: see kernel.c. No guard: it is included once per type. */
#define BYTES 0
#include "kernel_width.h"
#define BYTES 16
#include "kernel_width.h"
#if defined(__AVX2__)
#define BYTES 32
#include "kernel_width.h"
#endif
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define BYTES 64
#include "kernel_width.h"
#endif

static int32_t PASTED(TYPE, run, )(struct arithmetic_call *call)
{
    switch (call->simd) {
    case PW_SIMD_SCALAR: return PASTED(TYPE, , 0)(call);
    case PW_SIMD_128: return PASTED(TYPE, , 16)(call);
#if defined(__AVX2__)
    case PW_SIMD_256: return PASTED(TYPE, , 32)(call);
#endif
#if defined(__AVX512F__) && defined(__AVX512DQ__)
    case PW_SIMD_512: return PASTED(TYPE, , 64)(call);
#endif
    default: return arithmetic_none;
    }
}

#undef T
#undef B
#undef BITS
#undef FLOATING
#undef TYPE
