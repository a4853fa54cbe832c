/* For pw_stream_loop.h. */
PW_INLINE void PW_OWN(divide_together)(void *const *out, const void *const *in, int64_t at, pw_vector s, pw_vector *sum)
{
    (void)s, (void)sum;
    PW_OWN(vector) divisor[pw_line_vectors], q[pw_line_vectors];
    PW_EACH(k, pw_line_vectors) divisor[k] = PW_OWN(part)(in[pw_divisor], at, k);
    PW_EACH(k, pw_line_vectors) q[k] = divisor[k] / PW_OWN(part)(in[0], at, k);
    PW_OWN(put_line)(out[0], at, q);
    PW_EACH(j, pw_together - 1)
    {
        PW_EACH(k, pw_line_vectors) q[k] = PW_OWN(part)(in[pw_divisor + 1 + j], at, k) / divisor[k];
        PW_OWN(put_line)(out[1 + j], at, q);
    }
}

PW_INLINE void PW_OWN(divide)(void *const *out, const void *const *in, int64_t at, pw_vector s, pw_vector *sum)
{
    (void)s, (void)sum;
    PW_OWN(vector) q[pw_line_vectors];
    PW_EACH(k, pw_line_vectors) q[k] = PW_OWN(part)(in[0], at, k) / PW_OWN(part)(in[1], at, k);
    PW_OWN(put_line)(out[0], at, q);
}

static void PW_OWN(pass)(const struct pw_stream_call *call, double s)
{
    pw_over_all(call, pw_together, pw_together + 1, PW_OWN(divide_together), PW_OWN(broadcast)(s), 0);
    for (int j = 0; j < pw_apart; j++) {
        const void *in[2] = {pw_in(call, pw_first_apart + j), pw_in(call, pw_divisor)};
        void *out[1] = {pw_out(call, pw_together + j)};
        pw_over(call, out, 1, in, 2, PW_OWN(divide), PW_OWN(broadcast)(s), 0);
    }
}
