/* In C, because Fortran arrays have no addresses inside an element. The barrier after each block keeps compilers from
 * generating a call of memcpy or other widths. */
#include "alignment.h"
#include "pw_widths.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(PW_SVE_BYTES)
#include <arm_sve.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

/* Vectors per iteration, with one sum each, so that a load seldom waits for the sum of an earlier one. */
enum { together = 8 };

typedef int64_t __attribute__((may_alias)) element_64;
typedef int32_t __attribute__((may_alias)) element_32;

#define JOINED(label, bits) JOINED_(label, bits)
#define JOINED_(label, bits) label##_##bits
#define PW_TEMPLATE "accesses.h"
#define PW_TYPE word
#define PW_T int64_t
#include "pw_each_width.h"

int64_t pw_alignment(int64_t access, int64_t bits, int64_t n, void *to, const void *from, int64_t value, int64_t *total)
{
    switch (bits) {
    case 128: return pw_word_128_access(access, n, to, from, value, total);
        PW_IF_256(case 256: return pw_word_256_access(access, n, to, from, value, total);)
        PW_IF_512(case 512: return pw_word_512_access(access, n, to, from, value, total);)
    default: return 0;
    }
}
