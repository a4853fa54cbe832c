/* For pw_stream_loop.h. */
PW_INLINE void PW_OWN(add)(void *const *out, const void *const *in, int64_t at, pw_vector s, pw_vector *sum)
{
    (void)s, (void)sum;
    PW_EACH(j, pw_components)
    {
        PW_OWN(vector) t[pw_line_vectors];
        PW_EACH(k, pw_line_vectors)
        t[k] = PW_OWN(part)(in[j], at, k) + PW_OWN(part)(in[pw_components + j], at, k) +
               PW_OWN(part)(in[2 * pw_components + j], at, k);
        PW_OWN(put_line)(out[j], at, t);
    }
}

static void PW_OWN(pass)(const struct pw_stream_call *call, double s)
{
    pw_over_all(call, pw_components, 3 * pw_components, PW_OWN(add), PW_OWN(broadcast)(s), 0);
}
