/* The accesses with vectors of BITS bits: access_<BITS>. kernel.c includes this file once per width. */
#define OWN(what) JOINED(what, BITS)
#if BITS == 512
#define TARGET PW_WIDE /* the flags of a build prefer 256 bits */
#else
#define TARGET
#endif

typedef int64_t OWN(vector) __attribute__((vector_size(BITS / 8), aligned(1), may_alias));
enum { OWN(vectors) = 8 * alignment_block / BITS };

static TARGET void OWN(copy)(int64_t n, char *to, const char *from)
{
    for (int64_t i = 0; i < n; i += alignment_block) {
        for (int k = 0; k < OWN(vectors); k++) ((OWN(vector) *)(to + i))[k] = ((const OWN(vector) *)(from + i))[k];
        __asm__ volatile("" ::: "memory");
    }
}

static TARGET int64_t OWN(load)(int64_t n, const char *from)
{
    OWN(vector) sum[OWN(vectors)] = {0};
    for (int64_t i = 0; i < n; i += alignment_block)
        for (int k = 0; k < OWN(vectors); k++) sum[k] ^= ((const OWN(vector) *)(from + i))[k];
    int64_t total = 0;
    for (int k = 0; k < OWN(vectors); k++)
        for (int j = 0; j < BITS / 64; j++) total ^= sum[k][j];
    return total;
}

static TARGET void OWN(store)(int64_t n, char *to, int64_t value)
{
    const OWN(vector) every = value - (OWN(vector)){0};
    for (int64_t i = 0; i < n; i += alignment_block) {
        for (int k = 0; k < OWN(vectors); k++) ((OWN(vector) *)(to + i))[k] = every;
        __asm__ volatile("" ::: "memory");
    }
}

static void OWN(access)(int64_t access, int64_t n, char *to, const char *from, int64_t value, int64_t *total)
{
    if (access == alignment_copy) OWN(copy)(n, to, from);
    if (access == alignment_load) *total = OWN(load)(n, from);
    if (access == alignment_store) OWN(store)(n, to, value);
}

#undef TARGET
#undef OWN
#undef BITS
