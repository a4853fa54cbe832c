/* t_j(i) = t0_j(i) + t1_j(i) + t2_j(i) of six components at once. Inputs: t0, t1, t2, six components each. */
#include "pw_bundle.h"

enum { pw_components = 6 };

#if defined(PW_LOOP_COMPILER)
void pw_loop(int64_t n, int64_t stride, double *a, double *b, double *c, double *d, double *e, double *f, const double *t0,
             const double *t1, const double *t2);

static void pw_pass(const struct pw_bundle_call *call)
{
    pw_loop(call->elements, call->stride, pw_out(call, 0), pw_out(call, 1), pw_out(call, 2), pw_out(call, 3), pw_out(call, 4),
            pw_out(call, 5), pw_in(call, 0), pw_in(call, pw_components), pw_in(call, 2 * pw_components));
}
#else
PW_INLINE void pw_add(double *const *out, const double *const *in, int64_t i, pw_vector s, pw_vector *sum)
{
    (void)s, (void)sum;
    PW_EACH(j, pw_components)
    {
        pw_vector t[pw_line_vectors];
        PW_EACH(k, pw_line_vectors)
        t[k] = pw_part(in[j] + i, k) + pw_part(in[pw_components + j] + i, k) + pw_part(in[2 * pw_components + j] + i, k);
        pw_put(out[j] + i, t);
    }
}

static void pw_pass(const struct pw_bundle_call *call)
{
    pw_over_all(call, pw_components, 3 * pw_components, pw_add, 0.0, 0);
}
#endif

void pw_bundle_run(struct pw_bundle_call *call)
{
    for (int64_t pass = 0; pass < call->passes; pass++) {
        pw_pass(call);
        pw_pass_ends();
    }
}
