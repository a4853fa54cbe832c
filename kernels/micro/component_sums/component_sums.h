/* For pw_bundle_type.h. */
PW_INLINE void PW_OWN(add)(double *const *out, const double *const *in, int64_t i, pw_vector s, pw_vector *sum)
{
    (void)s, (void)sum;
    PW_EACH(j, pw_components)
    {
        PW_OWN(vector) t[pw_line_vectors];
        PW_EACH(k, pw_line_vectors)
        t[k] = PW_OWN(part)(in[j] + i, k) + PW_OWN(part)(in[pw_components + j] + i, k) +
               PW_OWN(part)(in[2 * pw_components + j] + i, k);
        PW_OWN(put)(out[j] + i, t);
    }
}

static void PW_OWN(pass)(const struct pw_bundle_call *call, double s)
{
    pw_over_all(call, pw_components, 3 * pw_components, PW_OWN(add), PW_OWN(every)(s), 0);
}
