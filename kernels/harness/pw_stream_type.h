/* The timed functions for elements of type PW_T, called PW_TYPE, and the selection of one of them: of the build's width or,
 * with PW_EVERY_WIDTH, of any SIMD width; with PW_SCALARS also for single elements, which compilers must not combine.
 * This file undefines these macros. */
#if PW_VECTOR_BYTES == 16 || defined(PW_EVERY_WIDTH)
#define PW_BYTES 16
#define PW_HAS_16_BYTES
#include "pw_stream_loop.h"
#endif
#if PW_VECTOR_BYTES == 32 || (defined(PW_EVERY_WIDTH) && defined(PW_HAS_256))
#define PW_BYTES 32
#define PW_HAS_32_BYTES
#include "pw_stream_loop.h"
#endif
#if PW_VECTOR_BYTES == 64 || (defined(PW_EVERY_WIDTH) && defined(PW_HAS_512))
#define PW_BYTES 64
#define PW_HAS_64_BYTES
#include "pw_stream_loop.h"
#endif
#if PW_VECTOR_BYTES == 8 || defined(PW_SCALARS)
#define PW_BYTES 8
#define PW_HAS_8_BYTES
#include "pw_stream_loop.h"
#endif
#define PW_RUN(bytes) PW_JOINED(PW_TYPE, bytes, run)(call)

static int32_t PW_JOINED(PW_TYPE, of, width)(struct pw_stream_call *call)
{
#if !defined(PW_EVERY_WIDTH)
    if (call->simd != PW_SIMD_COMPILER) return PW_STREAM_NO_SIMD;
#endif
    switch (call->simd == PW_SIMD_COMPILER ? PW_BUILD_SIMD : call->simd) {
#if defined(PW_HAS_8_BYTES)
    case PW_SIMD_SCALAR: return PW_RUN(8), PW_STREAM_OK;
#endif
#if defined(PW_HAS_16_BYTES)
    case PW_SIMD_128: return PW_RUN(16), PW_STREAM_OK;
#endif
#if defined(PW_HAS_32_BYTES)
    case PW_SIMD_256: return PW_RUN(32), PW_STREAM_OK;
#endif
#if defined(PW_HAS_64_BYTES)
    case PW_SIMD_512: return PW_RUN(64), PW_STREAM_OK;
#endif
    default: return PW_STREAM_NO_SIMD;
    }
}

#undef PW_RUN
#undef PW_HAS_8_BYTES
#undef PW_HAS_16_BYTES
#undef PW_HAS_32_BYTES
#undef PW_HAS_64_BYTES
#undef PW_EVERY_WIDTH
#undef PW_SCALARS
#undef PW_TYPE
#undef PW_T
#undef PW_SIGNED
