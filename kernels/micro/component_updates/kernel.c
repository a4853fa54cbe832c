/* v_j(i) = v_j(i) + s*t_j(i) of six components at once. */
#define PW_UPDATES
#include "pw_bundle.h"

enum { pw_components = 6 };

#if defined(PW_LOOP_COMPILER)
void pw_loop(int64_t n, int64_t stride, double *a, double *b, double *c, double *d, double *e, double *f, const double *t,
             double s);

static void pw_pass(const struct pw_bundle_call *call, double s)
{
    pw_loop(call->elements, call->stride, pw_out(call, 0), pw_out(call, 1), pw_out(call, 2), pw_out(call, 3), pw_out(call, 4),
            pw_out(call, 5), pw_in(call, 0), s);
}
#else
PW_INLINE void pw_update(double *const *out, const double *const *in, int64_t i, pw_vector s, pw_vector *sum)
{
    (void)sum;
    PW_EACH(j, pw_components)
    {
        pw_vector v[pw_line_vectors];
        PW_EACH(k, pw_line_vectors) v[k] = pw_part(out[j] + i, k) + s * pw_part(in[j] + i, k);
        pw_put(out[j] + i, v);
    }
}

static void pw_pass(const struct pw_bundle_call *call, double s)
{
    pw_over_all(call, pw_components, pw_components, pw_update, s, 0);
}
#endif

/* The sign of the scalar changes after every pass, so that v does not grow. */
void pw_bundle_run(struct pw_bundle_call *call)
{
    double s = call->scalar;
    for (int64_t pass = 0; pass < call->passes; pass++) {
        pw_pass(call, s);
        s = -s;
        pw_pass_ends();
    }
}
