/* a(i) = b_1(i) + ... + b_n(i), or the sum over all of them; one loop per n. */
#include "pw_stream.h"

PW_INLINE pw_vector part(const void *stream, int64_t at, int k)
{
    return pw_load((const double *)((const char *)stream + at) + k * pw_vector_doubles);
}

PW_INLINE void put_line(void *stream, int64_t at, const pw_vector *v)
{
    if (PW_NONTEMPORAL)
        pw_stream_line((double *)((char *)stream + at), v);
    else
        pw_store_line((double *)((char *)stream + at), v);
}

PW_INLINE double total_of(pw_vector v)
{
    double lane[pw_vector_doubles], total = 0;
    pw_store(lane, v);
    for (int l = 0; l < pw_vector_doubles; l++) total += lane[l];
    return total;
}

PW_INLINE void pw_add_streams(pw_vector *total, const void *const *in, const int streams, int64_t at)
{
    PW_EACH(k, pw_line_vectors) total[k] = part(in[0], at, k);
    for (int j = 1; j < streams; j++) PW_EACH(k, pw_line_vectors) total[k] += part(in[j], at, k);
}

PW_INLINE void pw_pass(struct pw_stream_call *call, const int streams, pw_line_work *store, pw_line_work *add)
{
    if (call->outputs > 0) {
        pw_over_all(call, 1, streams, store, (pw_vector){0}, 0);
        return;
    }
    pw_vector sum[pw_most_sums];
    PW_EACH(v, pw_most_sums) sum[v] = (pw_vector){0};
    pw_over_all(call, 0, streams, add, (pw_vector){0}, sum);
    PW_EACH(v, pw_most_sums - 1) sum[0] += sum[v + 1];
    call->sum = total_of(sum[0]);
}

#define PW_FOR_STREAMS(n)                                                                                                       \
    PW_INLINE void pw_store_##n(void *const *out, const void *const *in, int64_t at, pw_vector s, pw_vector *sum)            \
    {                                                                                                                           \
        pw_vector total[pw_line_vectors];                                                                                       \
        (void)s, (void)sum;                                                                                                     \
        pw_add_streams(total, in, n, at);                                                                                        \
        put_line(out[0], at, total);                                                                                              \
    }                                                                                                                           \
    PW_INLINE void pw_sum_##n(void *const *out, const void *const *in, int64_t at, pw_vector s, pw_vector *sum)              \
    {                                                                                                                           \
        pw_vector total[pw_line_vectors];                                                                                       \
        (void)s, (void)out;                                                                                                     \
        pw_add_streams(total, in, n, at);                                                                                        \
        PW_EACH(v, pw_line_vectors) sum[v] += total[v];                                                                         \
    }                                                                                                                           \
    static void pw_streams_##n(struct pw_stream_call *call) { pw_pass(call, n, pw_store_##n, pw_sum_##n); }

#define PW_COUNTS(X)                                                                                                            \
    X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16)                                      \
    X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31) X(32)

PW_COUNTS(PW_FOR_STREAMS)

#define PW_CASE(n)                                                                                                              \
    case n: pw_streams_##n(call); break;

int32_t pw_stream_run(struct pw_stream_call *call)
{
    if (call->type != PW_FP64) return PW_STREAM_NO_TYPE;
    for (int64_t pass = 0; pass < call->passes; pass++) {
        switch (call->inputs) {
            PW_COUNTS(PW_CASE)
        default: return PW_STREAM_OK;
        }
        pw_pass_ends();
    }
    return PW_STREAM_OK;
}
