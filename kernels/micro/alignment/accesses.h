/* The accesses with vectors of BITS bits: access_<BITS>. kernel.c includes this file once per width. */
#define OWN(label) JOINED(label, BITS)
#if BITS == 512
#define TARGET PW_WIDE /* the flags of a build prefer 256 bits */
#else
#define TARGET
#endif

typedef int64_t OWN(vector) __attribute__((vector_size(BITS / 8), aligned(1), may_alias));

static TARGET void OWN(copy)(int64_t n, char *to, const char *from)
{
    for (int64_t i = 0; i < n; i += BITS) {
        for (int k = 0; k < together; k++) ((OWN(vector) *)(to + i))[k] = ((const OWN(vector) *)(from + i))[k];
        __asm__ volatile("" ::: "memory");
    }
}

static TARGET int64_t OWN(load)(int64_t n, const char *from)
{
    OWN(vector) sum[together] = {0};
    for (int64_t i = 0; i < n; i += BITS)
        for (int k = 0; k < together; k++) sum[k] ^= ((const OWN(vector) *)(from + i))[k];
    int64_t total = 0;
    for (int k = 0; k < together; k++)
        for (int j = 0; j < BITS / 64; j++) total ^= sum[k][j];
    return total;
}

static TARGET void OWN(store)(int64_t n, char *to, int64_t value)
{
    const OWN(vector) broadcast = value - (OWN(vector)){0};
    for (int64_t i = 0; i < n; i += BITS) {
        for (int k = 0; k < together; k++) ((OWN(vector) *)(to + i))[k] = broadcast;
        __asm__ volatile("" ::: "memory");
    }
}

#define ELEMENT 64
#include "elements.h"
#define ELEMENT 32
#include "elements.h"

static int64_t OWN(access)(int64_t access, int64_t n, char *to, const char *from, int64_t value, int64_t *total)
{
    switch (access) {
    case alignment_copy: OWN(copy)(n, to, from); return 1;
    case alignment_load: *total = OWN(load)(n, from); return 1;
    case alignment_store: OWN(store)(n, to, value); return 1;
    default:
        return JOINED(OWN(access), 64)(access, n, to, from, value, total) ||
               JOINED(OWN(access), 32)(access, n, to, from, value, total);
    }
}

#undef TARGET
#undef OWN
#undef BITS
