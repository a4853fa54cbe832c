/* The timed function pw_<PW_TYPE>_<PW_BYTES>_run for elements of type PW_T in vectors of PW_BYTES bytes. pw_stream_type.h includes
 * this file once per type and width. */
#define PW_OWN(label) PW_JOINED(PW_TYPE, PW_BYTES, label)
/* Single elements stay single: compilers do not combine them into vectors. */
#if PW_BYTES == 8 && defined(PW_SCALARS)
#define PW_APART(v) __asm__("" : PW_IN_SCALAR(v))
#define PW_APART_AT(element) __asm__("" : "+m"(element))
#else
#define PW_APART(v) (void)0
#define PW_APART_AT(element) (void)0
#endif
/* Clang loads the vectors of a whole group ahead of its sums, and then has no registers left for these. Compilers regroup what
 * wraps around, and move sums between registers. */
#if PW_BYTES > 8 && (defined(PW_WRAPS) || (defined(__clang__) && defined(__aarch64__)))
#define PW_IN_TURN(sum) PW_OPAQUE(sum)
#else
#define PW_IN_TURN(sum) PW_APART(sum)
#endif
#if PW_BYTES == 64
#define PW_TARGET PW_WIDE
#else
#define PW_TARGET
#endif

typedef PW_T PW_OWN(one) __attribute__((may_alias));
typedef PW_T PW_OWN(many) __attribute__((vector_size(PW_BYTES), may_alias));
typedef PW_T PW_OWN(any) __attribute__((vector_size(PW_BYTES), aligned(sizeof(PW_T)), may_alias));
typedef PW_ONE_OR(PW_OWN(one), PW_OWN(many), PW_BYTES) PW_OWN(aligned);
typedef PW_ONE_OR(PW_OWN(one), PW_OWN(any), PW_BYTES) PW_OWN(vector);
enum {
    PW_OWN(lanes) = PW_BYTES / sizeof(PW_T),
    PW_OWN(group) = PW_COUNT * PW_OWN(lanes),
    PW_OWN(line) = PW_LINE_BYTES / sizeof(PW_T)
};

/* Store PW_TOGETHER(PW_BYTES) vectors. */
PW_INLINE PW_TARGET void PW_OWN(put)(PW_T *p, const PW_OWN(vector) *v)
{
#if PW_NONTEMPORAL
    PW_STREAM_BYTES(PW_OWN(aligned), PW_BYTES, p, v);
#else
    for (int k = 0; k < PW_TOGETHER(PW_BYTES); k++) {
        ((PW_OWN(vector) *)p)[k] = v[k];
        PW_APART_AT(p[k * (int)PW_OWN(lanes)]);
    }
#endif
}

#if defined(PW_WORK)
/* The kernel's file defines PW_OWN(pass)(call, s), a pass, from these and pw_lines.h. */

/* Vector k of the line at byte `at` of a stream. */
PW_INLINE PW_OWN(vector) PW_OWN(part)(const void *stream, int64_t at, int k)
{
    return ((const PW_OWN(vector) *)((const char *)stream + at))[k];
}

/* Store the vectors of that line. */
PW_INLINE void PW_OWN(put_line)(void *stream, int64_t at, const PW_OWN(vector) *v)
{
    PW_T *const p = (PW_T *)((char *)stream + at);
    for (int k = 0; k < pw_line_vectors; k += PW_TOGETHER(PW_BYTES)) PW_OWN(put)(p + k * (int)PW_OWN(lanes), v + k);
}

/* Scalar s in every element. */
PW_INLINE pw_vector PW_OWN(broadcast)(double s)
{
    PW_T lane[PW_OWN(lanes)];
    for (int l = 0; l < (int)PW_OWN(lanes); l++) lane[l] = PW_NARROWED(PW_T, s);
    pw_vector v;
    __builtin_memcpy(&v, lane, sizeof v);
    return v;
}

#include PW_WORK

static void PW_OWN(run)(struct pw_stream_call *call)
{
    double s = call->scalar;
    for (int64_t pass = 0; pass < call->passes; pass++) {
        PW_OWN(pass)(call, s);
        s = PW_NEXT(s);
        pw_pass_ends();
    }
}
#else
/* Whole groups of PW_COUNT vectors are processed between a scalar head, up to a line of a, and a scalar tail. */

/* Single elements from first to last. Returns the sum of a reduction. */
PW_INLINE PW_T PW_OWN(elements)(PW_T *restrict a, const PW_T *restrict b, const PW_T *restrict c, const PW_T *restrict d, PW_T s,
                                int64_t first, int64_t last)
{
    PW_T sum = 0;
    (void)b, (void)c, (void)d, (void)s;
    for (int64_t k = first; k < last; k++) {
        PW_T value = (PW_T)PW_VALUE(PW_T, k, s);
        PW_APART(value);
#if defined(PW_REDUCES)
        sum = (PW_T)(sum + value);
#else
        a[k] = value;
#endif
    }
    return sum;
}

/* One group of vectors from the elements at a, b, c, d; `sum` has one vector for each. */
PW_INLINE PW_TARGET void PW_OWN(vectors)(PW_T *restrict a, const PW_T *restrict b, const PW_T *restrict c,
                                         const PW_T *restrict d, PW_OWN(vector) s, PW_OWN(vector) *sum)
{
    (void)b, (void)c, (void)d, (void)s, (void)sum;
    PW_BASE(a, 1);
    PW_BASE(b, PW_ARRAYS > 1);
    PW_BASE(c, PW_ARRAYS > 2);
    PW_BASE(d, PW_ARRAYS > 3);
#if defined(PW_REDUCES)
    PW_UNROLL
    for (int u = 0; u < PW_COUNT; u++) {
        sum[u] += PW_VALUE(PW_OWN(vector), u * (int)PW_OWN(lanes), s);
        PW_IN_TURN(sum[u]);
    }
#else
    enum { together = PW_TOGETHER(PW_BYTES) };
    PW_UNROLL
    for (int u = 0; u < PW_COUNT; u += together) {
        PW_OWN(vector) value[together];
        for (int k = 0; k < together; k++) {
            value[k] = PW_VALUE(PW_OWN(vector), (u + k) * (int)PW_OWN(lanes), s);
            PW_APART(value[k]);
        }
        PW_OWN(put)(a + u * (int)PW_OWN(lanes), value);
    }
#endif
}

PW_INLINE PW_TARGET PW_T PW_OWN(total)(PW_OWN(vector) *sum)
{
    PW_T lane[PW_OWN(lanes)], total = 0;
    for (int u = 1; u < PW_COUNT; u++) sum[0] += sum[u];
    *(PW_OWN(vector) *)lane = sum[0];
    for (int l = 0; l < (int)PW_OWN(lanes); l++) total = (PW_T)(total + lane[l]);
    return total;
}

/* With a mode of prefetch=software. */
PW_INLINE PW_TARGET void PW_OWN(run_in)(struct pw_stream_call *call, const int mode)
{
    enum { group = PW_OWN(group), line = PW_OWN(line) };
    PW_T *restrict const a = call->array[0];
    const PW_T *restrict const b = call->array[1];
    const PW_T *restrict const c = call->array[2];
    const PW_T *restrict const d = call->array[3];
    PW_T s = (PW_T)PW_NARROWED(PW_SIGNED, call->scalar), lane[PW_OWN(lanes)];
    const int64_t n = call->elements;
    const int64_t to_line = (int64_t)((0 - (uintptr_t)a) % PW_LINE_BYTES / sizeof(PW_T));
    const int64_t head = to_line < n ? to_line : n;
#if defined(PW_PREFETCH_BLOCK)
    const int64_t wanted = call->block / PW_LINE_BYTES * line, block = wanted > 0 ? wanted : line;
#else
    const int64_t block = n - head > 0 ? n - head : 1;
#endif
    const struct pw_prefetch_plan plan = call->plan;
    for (int l = 0; l < (int)PW_OWN(lanes); l++) lane[l] = s;
    PW_OWN(vector) broadcast_s = *(const PW_OWN(vector) *)lane;
    for (int64_t pass = 0; pass < call->passes; pass++) {
        PW_OWN(vector) sum[PW_COUNT];
        for (int u = 0; u < PW_COUNT; u++) sum[u] = (PW_OWN(vector)){0};
        struct pw_zeroing zero = pw_zero_begin(a + head, PW_ZEROES ? n - head : 0, sizeof *a, call->zero_distance);
        PW_T rest = PW_OWN(elements)(a, b, c, d, s, 0, head);
        for (int64_t first = head; first < n; first += block) {
            const int64_t end = first + block < n ? first + block : n;
#if defined(PW_PREFETCH_BLOCK)
            pw_load_block(call, (const void *const *)call->array + !PW_READS_A, PW_ARRAYS - !PW_READS_A,
                           first * (int64_t)sizeof(PW_T), end * (int64_t)sizeof(PW_T));
#endif
            int64_t i = first;
            PW_NO_UNROLL
            for (const int64_t last = end - group; i <= last; i += group) {
                /* A group may be a part of a line: then only one of the line's groups asks for it. */
                if (group >= line || (i - first) % line < group) {
                    PW_UNROLL
                    for (int l = 0; l < group; l += line) {
                        const void *const at[4] = {a + i + l, b + i + l, c + i + l, d + i + l};
                        pw_prefetch_streams(&plan, mode, (void *const *)at, pw_outputs, at + pw_outputs, PW_ARRAYS - pw_outputs, 0);
                    }
                }
                pw_zero_until(&zero, a + i + group);
                PW_OWN(vectors)(a + i, b + i, c + i, d + i, broadcast_s, sum);
            }
            pw_zero_skip(&zero, a + end);
            rest = (PW_T)(rest + PW_OWN(elements)(a, b, c, d, s, i, end));
        }
#if defined(PW_REDUCES)
        for (int u = 0; u < PW_COUNT; u++) PW_KEEP(sum[u], PW_OWN(lanes));
        if (pass + 1 == call->passes) call->sum = (double)(PW_SIGNED)(PW_T)(rest + PW_OWN(total)(sum));
#endif
        s = (PW_T)PW_NEXT(s);
        broadcast_s = PW_NEXT(broadcast_s);
        pw_pass_ends();
    }
}

static PW_TARGET void PW_OWN(run)(struct pw_stream_call *call)
{
#if defined(PW_PREFETCH_SOFTWARE)
#define PW_RUN_IN(mode) PW_OWN(run_in)(call, mode)
    switch (call->plan.mode) {
    case PW_PREFETCH_INTO_L2: PW_RUN_IN(PW_PREFETCH_INTO_L2); return;
        PW_MODES_BY_SVE(PW_RUN_IN)
    default: break;
    }
#undef PW_RUN_IN
#endif
    PW_OWN(run_in)(call, 0);
}

#endif

#undef PW_OWN
#undef PW_APART
#undef PW_APART_AT
#undef PW_IN_TURN
#undef PW_TARGET
#undef PW_BYTES
