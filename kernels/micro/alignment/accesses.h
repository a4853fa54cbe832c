/* The accesses with vectors of one width: see kernel.c. */
#if PW_BYTES > 0
#define BITS (PW_BYTES * 8)

typedef PW_OWN(vector) PW_OWN(anywhere) __attribute__((aligned(1), may_alias));

static PW_TARGET void PW_OWN(copy)(int64_t n, char *to, const char *from)
{
    for (int64_t i = 0; i < n; i += BITS) {
        for (int k = 0; k < together; k++) ((PW_OWN(anywhere) *)(to + i))[k] = ((const PW_OWN(anywhere) *)(from + i))[k];
        __asm__ volatile("" ::: "memory");
    }
}

static PW_TARGET int64_t PW_OWN(loads)(int64_t n, const char *from)
{
    PW_OWN(vector) sum[together] = {0};
    for (int64_t i = 0; i < n; i += BITS)
        for (int k = 0; k < together; k++) sum[k] ^= ((const PW_OWN(anywhere) *)(from + i))[k];
    int64_t total = 0;
    for (int k = 0; k < together; k++)
        for (int j = 0; j < BITS / 64; j++) total ^= sum[k][j];
    return total;
}

static PW_TARGET void PW_OWN(stores)(int64_t n, char *to, int64_t value)
{
    const PW_OWN(vector) broadcast = PW_OWN(broadcast)(value);
    for (int64_t i = 0; i < n; i += BITS) {
        for (int k = 0; k < together; k++) ((PW_OWN(anywhere) *)(to + i))[k] = broadcast;
        __asm__ volatile("" ::: "memory");
    }
}

#define ELEMENT 64
#include "elements.h"
#define ELEMENT 32
#include "elements.h"

static int64_t PW_OWN(access)(int64_t access, int64_t n, char *to, const char *from, int64_t value, int64_t *total)
{
    switch (access) {
    case alignment_copy: PW_OWN(copy)(n, to, from); return 1;
    case alignment_load: *total = PW_OWN(loads)(n, from); return 1;
    case alignment_store: PW_OWN(stores)(n, to, value); return 1;
    default:
        return JOINED(PW_OWN(access), 64)(access, n, to, from, value, total) ||
               JOINED(PW_OWN(access), 32)(access, n, to, from, value, total);
    }
}

#undef BITS
#endif
