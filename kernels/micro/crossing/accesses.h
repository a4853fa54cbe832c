/* The accesses of BITS bits: access_<BITS>. kernel.c includes this file once per width. */
#define OWN(label) JOINED(label, BITS)
#if BITS == 64
typedef uint64_t OWN(vector);
#define KEEP(v) __asm__ volatile("" : "+r"(v)::"memory")
#else
typedef uint64_t OWN(vector) __attribute__((vector_size(BITS / 8)));
#define KEEP(v)                            \
    do {                                   \
        PW_OPAQUE(v);                      \
        __asm__ volatile("" ::: "memory"); \
    } while (0)
#endif
#if BITS == 512
#define TARGET PW_WIDE
#else
#define TARGET
#endif

typedef OWN(vector) OWN(anywhere) __attribute__((aligned(1), may_alias));

/* The sums are opaque, so that every load is executed. */
static TARGET void OWN(load)(int64_t rounds, int64_t places, const char *first, int64_t *total)
{
    OWN(vector) sum[together] = {0};
    for (const char *at = first; at < first + places * apart; at += together * apart)
        for (int64_t round = 0; round < rounds; round++) {
            PW_UNROLL
            for (int k = 0; k < together; k++) sum[k] += *(const OWN(anywhere) *)(at + k * apart);
            PW_UNROLL
            for (int k = 0; k < together; k++) KEEP(sum[k]);
        }
    uint64_t word[together * BITS / 64];
    memcpy(word, sum, sizeof word);
    for (int k = 0; k < together * BITS / 64; k++) *total = (int64_t)((uint64_t)*total + word[k]);
}

static TARGET void OWN(store)(int64_t rounds, int64_t places, char *first, int64_t value)
{
    const OWN(vector) broadcast = (uint64_t)value - (OWN(vector)){0};
    for (char *at = first; at < first + places * apart; at += together * apart)
        for (int64_t round = 0; round < rounds; round++) {
            PW_UNROLL
            for (int k = 0; k < together; k++) *(OWN(anywhere) *)(at + k * apart) = broadcast;
            __asm__ volatile("" ::: "memory");
        }
}

static TARGET void OWN(forward)(int64_t times, char *at)
{
    const OWN(vector) one = 1 - (OWN(vector)){0};
    for (int64_t k = 0; k < times; k++) {
        OWN(vector) sum = *(OWN(anywhere) *)at + one;
        KEEP(sum); /* separate load and store, at every width */
        *(OWN(anywhere) *)at = sum;
    }
}

static void OWN(access)(int32_t access, int64_t rounds, int64_t places, char *first, int64_t value, int64_t *total)
{
    if (access == crossing_load) OWN(load)(rounds, places, first, total);
    if (access == crossing_store) OWN(store)(rounds, places, first, value);
    if (access == crossing_forward) OWN(forward)(rounds * places, first);
}

#undef TARGET
#undef KEEP
#undef OWN
#undef BITS
