/* The timed loop of a kernel of indirect access over elements of type PW_T, called PW_TYPE; pw_indirect.h includes this file once per
 * type. Undefines both macros. */
#define PW_OWN(what) PW_OWN_OF(PW_TYPE, what)

/* Element number i, whose index is `at`, from 1. The barrier keeps compilers from vectorising, of which prefetches also keep
 * them: all explicit variants access element by element. */
PW_INLINE void PW_OWN(element)(PW_T *a, const PW_T *b, const PW_T *d, int64_t at, PW_T s, int64_t i)
{
    PW_T *const to = a + (PW_SCATTERS ? at - 1 : i);
    const PW_T from = b[PW_GATHERS ? at - 1 : i];
    *to = PW_UPDATES ? *to + s * from : PW_PAIRS ? from + s * d[at - 1] : from;
    __asm__ volatile("" ::: "memory");
}

PW_INLINE void PW_OWN(prefetch)(const PW_T *a, const PW_T *b, const PW_T *d, int64_t at)
{
    if (PW_GATHERS) pw_prefetch_read(b + at - 1);
    if (PW_PAIRS) pw_prefetch_read(d + at - 1);
    if (PW_SCATTERS) pw_prefetch_write(a + at - 1);
}

PW_INLINE void PW_OWN(preload)(const PW_T *a, const PW_T *b, const PW_T *d, int64_t at)
{
    if (PW_GATHERS) pw_preload(b + at - 1);
    if (PW_PAIRS) pw_preload(d + at - 1);
    if (PW_SCATTERS) pw_preload(a + at - 1);
}

static void PW_OWN(run)(int64_t n, PW_T *a, const PW_T *b, const PW_T *d, const int32_t *c, PW_T s, int64_t tuning)
{
    int64_t i = 0;
#if defined(PW_PREFETCH_SOFTWARE)
    PW_NO_UNROLL
    for (; i + pw_group + tuning <= n; i += pw_group) {
        PW_UNROLL
        for (int k = 0; k < pw_group; k++) {
            PW_OWN(prefetch)(a, b, d, c[i + k + tuning]);
            PW_OWN(element)(a, b, d, c[i + k], s, i + k);
        }
    }
#endif
    while (i < n) {
        int64_t last = n;
#if defined(PW_PREFETCH_BLOCK)
        last = i + tuning < n ? i + tuning : n;
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
    (void)tuning;
}

#undef PW_OWN
#undef PW_T
#undef PW_TYPE
