/* In C, because Fortran arrays have no addresses inside an element. */
#include "crossing.h"
#include "pw_widths.h"

#include <string.h>

#define JOINED(label, bits) JOINED_(label, bits)
#define JOINED_(label, bits) label##_##bits
#define BITS 64
#include "accesses.h"
#define BITS 128
#include "accesses.h"
#if defined(PW_HAS_256)
#define BITS 256
#include "accesses.h"
#endif
#if defined(PW_HAS_512)
#define BITS 512
#include "accesses.h"
#endif

int32_t pw_crossing(int32_t access, int32_t simd, int64_t rounds, int64_t places, void *first, int64_t value, int64_t *total)
{
    switch (simd) {
    case PW_SIMD_SCALAR: return access_64(access, rounds, places, first, value, total), 0;
    case PW_SIMD_128: return access_128(access, rounds, places, first, value, total), 0;
#if defined(PW_HAS_256)
    case PW_SIMD_256: return access_256(access, rounds, places, first, value, total), 0;
#endif
#if defined(PW_HAS_512)
    case PW_SIMD_512: return access_512(access, rounds, places, first, value, total), 0;
#endif
    default: return 1;
    }
}
