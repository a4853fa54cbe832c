/* The accesses of one width: see kernel.c. */
#if PW_BYTES == 0
#define WORDS 1
#define KEEP(v) __asm__ volatile("" : "+r"(v)::"memory")
#else
#define WORDS (PW_BYTES / 8)
#define KEEP(v)                            \
    do {                                   \
        PW_OPAQUE(v);                      \
        __asm__ volatile("" ::: "memory"); \
    } while (0)
#endif

typedef PW_OWN(vector) PW_OWN(anywhere) __attribute__((aligned(1), may_alias));

/* The sums are opaque, so that every load is executed. */
static PW_TARGET void PW_OWN(loads)(int64_t rounds, int64_t places, const char *first, int64_t *total)
{
    PW_OWN(vector) sum[together] = {0};
    for (const char *at = first; at < first + places * apart; at += together * apart)
        for (int64_t round = 0; round < rounds; round++) {
            PW_UNROLL
            for (int k = 0; k < together; k++) sum[k] += *(const PW_OWN(anywhere) *)(at + k * apart);
            PW_UNROLL
            for (int k = 0; k < together; k++) KEEP(sum[k]);
        }
    uint64_t word[together * WORDS];
    memcpy(word, sum, sizeof word);
    for (int k = 0; k < together * WORDS; k++) *total = (int64_t)((uint64_t)*total + word[k]);
}

static PW_TARGET void PW_OWN(stores)(int64_t rounds, int64_t places, char *first, int64_t value)
{
    const PW_OWN(vector) broadcast = PW_OWN(broadcast)((uint64_t)value);
    for (char *at = first; at < first + places * apart; at += together * apart)
        for (int64_t round = 0; round < rounds; round++) {
            PW_UNROLL
            for (int k = 0; k < together; k++) *(PW_OWN(anywhere) *)(at + k * apart) = broadcast;
            __asm__ volatile("" ::: "memory");
        }
}

static PW_TARGET void PW_OWN(forward)(int64_t times, char *at)
{
    const PW_OWN(vector) one = PW_OWN(broadcast)(1);
    for (int64_t k = 0; k < times; k++) {
        PW_OWN(vector) sum = *(PW_OWN(anywhere) *)at + one;
        KEEP(sum); /* separate load and store, at every width */
        *(PW_OWN(anywhere) *)at = sum;
    }
}

static void PW_OWN(access)(int32_t access, int64_t rounds, int64_t places, char *first, int64_t value, int64_t *total)
{
    if (access == crossing_load) PW_OWN(loads)(rounds, places, first, total);
    if (access == crossing_store) PW_OWN(stores)(rounds, places, first, value);
    if (access == crossing_forward) PW_OWN(forward)(rounds * places, first);
}

#undef WORDS
#undef KEEP
