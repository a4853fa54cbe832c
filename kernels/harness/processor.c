#include "processor.h"

int64_t pw_zero_bytes(void)
{
#if defined(__aarch64__)
    uint64_t dczid;
    __asm__("mrs %0, dczid_el0" : "=r"(dczid));
    /* Bit 4, DZP: prohibited. Bits 0 to 3, BS: the logarithm of 4-byte words. */
    return dczid & 16 ? 0 : INT64_C(4) << (dczid & 15);
#else
    return 0;
#endif
}

int64_t pw_sve_bits_built(void)
{
#if defined(__ARM_FEATURE_SVE_BITS)
    return __ARM_FEATURE_SVE_BITS;
#else
    return 0;
#endif
}

int64_t pw_sve_bits(void)
{
#if defined(__ARM_FEATURE_SVE)
    int64_t bytes;
    __asm__("rdvl %0, #1" : "=r"(bytes));
    return 8 * bytes;
#else
    return 0;
#endif
}
