/* Accesses of elements of ELEMENT bits (64 or 32) with vectors of BITS bits. Gathers and scatters of
 * neighbours, in order; structures of two elements. accesses.h includes this file once per size of the elements. */
#define EACH(label) JOINED(PW_OWN(label), ELEMENT)
#define ONCE(before, element) ONCE_(before, element)
#define ONCE_(before, element) before##element
#define TWICE(before, between, element) TWICE_(before, between, element)
#define TWICE_(before, between, element) before##element##between##element

#if defined(PW_SVE_BYTES)
#define LANES_BYTES PW_SVE_BYTES
#define ALL svwhilelt_b8_s32(0, BITS / 8)
#define GATHER(from) TWICE(svld1_gather_s, index_s, ELEMENT)(ALL, (const void *)(from), index)
#define SCATTER(to) TWICE(svst1_scatter_s, index_s, ELEMENT)(ALL, (void *)(to), index, broadcast)
#define LOAD_PAIR(from) ONCE(svld2_s, ELEMENT)(ALL, (const void *)(from))
#define MEMBER(pair, which) ONCE(svget2_s, ELEMENT)(pair, which)
#define STORE_PAIR(to) ONCE(svst2_s, ELEMENT)(ALL, (void *)(to), ONCE(svcreate2_s, ELEMENT)(first, second))
#else
#define LANES_BYTES (BITS / 8)
#if BITS == 512 && defined(__AVX512F__)
#define GATHER(from) (EACH(lanes))TWICE(_mm512_i, gather_epi, ELEMENT)((__m512i)index, from, ELEMENT / 8)
#define SCATTER(to) TWICE(_mm512_i, scatter_epi, ELEMENT)(to, (__m512i)index, (__m512i)broadcast, ELEMENT / 8)
#elif BITS == 256 && defined(__AVX2__)
#define GATHER(from) (EACH(lanes))TWICE(_mm256_i, gather_epi, ELEMENT)((const void *)(from), (__m256i)index, ELEMENT / 8)
#if defined(__AVX512VL__)
#define SCATTER(to) TWICE(_mm256_i, scatter_epi, ELEMENT)(to, (__m256i)index, (__m256i)broadcast, ELEMENT / 8)
#endif
#elif BITS == 128 && defined(__ARM_NEON)
#define LOAD_PAIR(from) ONCE(vld2q_s, ELEMENT)((const void *)(from))
#define MEMBER(pair, which) (pair).val[which]
#define STORE_PAIR(to) ONCE(vst2q_s, ELEMENT)((void *)(to), ((__typeof__(LOAD_PAIR(0))){{first, second}}))
#endif
#endif

typedef ONCE(element_, ELEMENT) EACH(element);
typedef EACH(element) EACH(lanes) __attribute__((vector_size(LANES_BYTES)));

/* Lane k holds element (first + k * step) of a word, whose elements repeat; in a register, not in memory. */
PW_INLINE PW_TARGET EACH(lanes) EACH(repeated)(const EACH(element) *word, int first, int step)
{
    EACH(lanes) lanes;
    for (int k = 0; k < LANES_BYTES * 8 / ELEMENT; k++) lanes[k] = word[(first + k * step) % (64 / ELEMENT)];
    PW_OPAQUE(lanes);
    return lanes;
}

/* The exclusive or of the words in sums. A copy, because the address of sums would keep them in memory. */
PW_INLINE PW_TARGET uint64_t EACH(combined)(const EACH(lanes) *sum, int sums)
{
    EACH(lanes) all = sum[0];
    uint64_t words[LANES_BYTES / 8], total = 0;
    PW_UNROLL
    for (int k = 1; k < sums; k++) all ^= sum[k];
    __builtin_memcpy(words, &all, sizeof words);
    for (int k = 0; k < LANES_BYTES / 8; k++) total ^= words[k];
    return total;
}

#if defined(GATHER)
/* 0, 1, 2 and so on, hidden from the compiler, which would load or store contiguously. */
PW_INLINE PW_TARGET EACH(lanes) EACH(neighbours)(void)
{
    EACH(lanes) index;
    for (int k = 0; k < LANES_BYTES * 8 / ELEMENT; k++) index[k] = k;
    PW_OPAQUE(index);
    return index;
}

static PW_TARGET int64_t EACH(gather)(int64_t n, const char *from)
{
    const EACH(lanes) index = EACH(neighbours)();
    EACH(lanes) sum[together] = {0};
    PW_NO_UNROLL
    for (int64_t i = 0; i < n; i += BITS)
        PW_UNROLL
        for (int k = 0; k < together; k++) {
            const EACH(lanes) gathered = GATHER(from + i + k * BITS / 8);
            sum[k] ^= gathered;
        }
    return (int64_t)EACH(combined)(sum, together);
}
#endif

#if defined(SCATTER)
static PW_TARGET void EACH(scatter)(int64_t n, char *to, const void *word)
{
    const EACH(lanes) index = EACH(neighbours)(), broadcast = EACH(repeated)(word, 0, 1);
    for (int64_t i = 0; i < n; i += BITS) {
        PW_UNROLL
        for (int k = 0; k < together; k++) SCATTER(to + i + k * BITS / 8);
        __asm__ volatile("" ::: "memory");
    }
}
#endif

#if defined(LOAD_PAIR)
static PW_TARGET int64_t EACH(structure_load)(int64_t n, const char *from)
{
    EACH(lanes) first[together / 2] = {0}, second[together / 2] = {0};
    PW_NO_UNROLL
    for (int64_t i = 0; i < n; i += BITS)
        PW_UNROLL
        for (int k = 0; k < together / 2; k++) {
            const __typeof__(LOAD_PAIR(from)) pair = LOAD_PAIR(from + i + k * BITS / 4);
            const EACH(lanes) one = MEMBER(pair, 0), other = MEMBER(pair, 1);
            first[k] ^= one;
            second[k] ^= other;
        }
    const uint64_t a = EACH(combined)(first, together / 2), b = EACH(combined)(second, together / 2);
    if (ELEMENT == 64) return (int64_t)(a ^ b);
    return (int64_t)((b ^ b << 32) >> 32 << 32 | (uint32_t)(a ^ a >> 32)); /* as in memory: the first is the lower half */
}

static PW_TARGET void EACH(structure_store)(int64_t n, char *to, const void *word)
{
    const EACH(lanes) first = EACH(repeated)(word, 0, 0), second = EACH(repeated)(word, 1, 0);
    for (int64_t i = 0; i < n; i += BITS) {
        PW_UNROLL
        for (int k = 0; k < together / 2; k++) STORE_PAIR(to + i + k * BITS / 4);
        __asm__ volatile("" ::: "memory");
    }
}
#endif

static int64_t EACH(access)(int64_t access, int64_t n, char *to, const char *from, int64_t value, int64_t *total)
{
    (void)n, (void)to, (void)from, (void)value, (void)total;
    switch (access) {
#if defined(GATHER)
    case JOINED(alignment_gather, ELEMENT): *total = EACH(gather)(n, from); return 1;
#endif
#if defined(SCATTER)
    case JOINED(alignment_scatter, ELEMENT): EACH(scatter)(n, to, &value); return 1;
#endif
#if defined(LOAD_PAIR)
    case JOINED(alignment_structure_load, ELEMENT): *total = EACH(structure_load)(n, from); return 1;
    case JOINED(alignment_structure_store, ELEMENT): EACH(structure_store)(n, to, &value); return 1;
#endif
    default: return 0;
    }
}

#undef EACH
#undef ONCE
#undef ONCE_
#undef TWICE
#undef TWICE_
#undef LANES_BYTES
#undef ALL
#undef GATHER
#undef SCATTER
#undef LOAD_PAIR
#undef MEMBER
#undef STORE_PAIR
#undef ELEMENT
