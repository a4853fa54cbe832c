/* For pw_stream_loop.h. */
PW_INLINE void PW_OWN(update)(void *const *out, const void *const *in, int64_t at, pw_vector s, pw_vector *sum)
{
    (void)sum;
    PW_OWN(vector) broadcast_s;
    __builtin_memcpy(&broadcast_s, &s, sizeof broadcast_s);
    PW_EACH(j, pw_components)
    {
        PW_OWN(vector) v[pw_line_vectors];
        PW_EACH(k, pw_line_vectors) v[k] = PW_OWN(part)(out[j], at, k) + broadcast_s * PW_OWN(part)(in[j], at, k);
        PW_OWN(put_line)(out[j], at, v);
    }
}

static void PW_OWN(pass)(const struct pw_stream_call *call, double s)
{
    pw_over_all(call, pw_components, pw_components, PW_OWN(update), PW_OWN(broadcast)(s), 0);
}
