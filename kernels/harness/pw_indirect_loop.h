/* The timed loop of a kernel of indirect access over elements of type PW_T, called PW_TYPE; pw_indirect.h includes this file once per
 * type. Undefines both macros. */
#define PW_OWN(label) PW_OWN_OF(PW_TYPE, label)

/* Element number i, whose index is `at`, from 1. The barrier keeps compilers from vectorising, of which prefetches also keep
 * them: all explicit variants access element by element. */
PW_INLINE void PW_OWN(element)(PW_T *a, const PW_T *b, const PW_T *d, int64_t at, PW_T s, int64_t i)
{
    PW_T *const to = a + (PW_SCATTERS ? at - 1 : i);
    const PW_T from = b[PW_GATHERS ? at - 1 : i];
    *to = PW_UPDATES ? *to + s * from : PW_PAIRS ? from + s * d[PW_GATHERS ? at - 1 : i] : from;
    __asm__ volatile("" ::: "memory");
}

PW_INLINE void PW_OWN(prefetch)(const PW_T *a, const PW_T *b, const PW_T *d, int64_t at)
{
    if (PW_GATHERS) pw_prefetch_read(b + at - 1);
    if (PW_PAIRS && PW_GATHERS) pw_prefetch_read(d + at - 1);
    if (PW_SCATTERS) pw_prefetch_write(a + at - 1);
}

PW_INLINE void PW_OWN(preload)(const PW_T *a, const PW_T *b, const PW_T *d, int64_t at)
{
    if (PW_GATHERS) pw_preload(b + at - 1);
    if (PW_PAIRS && PW_GATHERS) pw_preload(d + at - 1);
    if (PW_SCATTERS) pw_preload(a + at - 1);
}

#if defined(PW_PREFETCH_SOFTWARE) && defined(__ARM_FEATURE_SVE)
/* The groups of elements whose prefetches are within n, with gather prefetches; returns how many elements these are. */
PW_INLINE int64_t PW_OWN(gathering)(int64_t n, PW_T *a, const PW_T *b, const PW_T *d, const int32_t *c, PW_T s, int64_t distance)
{
    int64_t i = 0;
    PW_NO_UNROLL
    for (; i + pw_group + distance <= n; i += pw_group) {
        if (PW_GATHERS) pw_prefetch_group_read(b, c + i + distance, sizeof *b);
        if (PW_PAIRS && PW_GATHERS) pw_prefetch_group_read(d, c + i + distance, sizeof *d);
        if (PW_SCATTERS) pw_prefetch_group_write(a, c + i + distance, sizeof *a);
        PW_UNROLL
        for (int k = 0; k < pw_group; k++) PW_OWN(element)(a, b, d, c[i + k], s, i + k);
    }
    return i;
}
#endif

static void PW_OWN(run)(int64_t n, PW_T *a, const PW_T *b, const PW_T *d, const int32_t *c, PW_T s,
                        const struct pw_indirect_tuning *tuning)
{
    const int64_t distance = tuning->distance;
    int64_t i = 0;
#if defined(PW_PREFETCH_SOFTWARE)
#if defined(__ARM_FEATURE_SVE)
    if (tuning->gather) i = PW_OWN(gathering)(n, a, b, d, c, s, distance);
#endif
    PW_NO_UNROLL
    for (; i + pw_group + distance <= n; i += pw_group) {
        PW_UNROLL
        for (int k = 0; k < pw_group; k++) {
            PW_OWN(prefetch)(a, b, d, c[i + k + distance]);
            PW_OWN(element)(a, b, d, c[i + k], s, i + k);
        }
    }
#endif
    while (i < n) {
        int64_t last = n;
#if defined(PW_PREFETCH_BLOCK)
        last = i + distance < n ? i + distance : n;
        for (int64_t k = i; k < last; k++) PW_OWN(preload)(a, b, d, c[k]);
#endif
        PW_NO_UNROLL
        for (; i + pw_group <= last; i += pw_group) {
            PW_UNROLL
            for (int k = 0; k < pw_group; k++) PW_OWN(element)(a, b, d, c[i + k], s, i + k);
        }
        PW_NO_UNROLL
        for (; i < last; i++) PW_OWN(element)(a, b, d, c[i], s, i);
    }
    (void)distance;
}

#undef PW_OWN
#undef PW_T
#undef PW_TYPE
