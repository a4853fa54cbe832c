/* q_j(i) = p_j(i) / d(i): five quotients in one loop, one of them by another divisor, then six loops of one each.
 * Inputs: the metric, the divisor, four more components, six tracers. */
#include "pw_bundle.h"

enum { pw_divisor = 1, pw_together = 5, pw_first_apart = 6, pw_apart = 6 };

#if defined(PW_FORTRAN_LOOP)
void pw_loop(int64_t n, int64_t stride, double *q, double *tracer, const double *metric, const double *p, const double *p_tracer);

static void pw_pass(const struct pw_bundle_call *call)
{
    pw_loop(call->elements, call->stride, pw_out(call, 0), pw_out(call, pw_together), pw_in(call, 0), pw_in(call, pw_divisor),
            pw_in(call, pw_first_apart));
}
#else
PW_INLINE void pw_divide_together(double *const *out, const double *const *in, int64_t i, pw_vector s, pw_vector *sum)
{
    (void)s, (void)sum;
    PW_VECTORS(u)
    {
        const pw_vector divisor = pw_load(in[pw_divisor] + i + u);
        pw_put(out[0] + i + u, divisor / pw_load(in[0] + i + u));
        PW_EACH(j, pw_together - 1) pw_put(out[1 + j] + i + u, pw_load(in[pw_divisor + 1 + j] + i + u) / divisor);
    }
}

PW_INLINE void pw_divide(double *const *out, const double *const *in, int64_t i, pw_vector s, pw_vector *sum)
{
    (void)s, (void)sum;
    PW_VECTORS(u) pw_put(out[0] + i + u, pw_load(in[0] + i + u) / pw_load(in[1] + i + u));
}

static void pw_pass(const struct pw_bundle_call *call)
{
    pw_over_all(call, pw_together, pw_together + 1, pw_divide_together, 0.0, 0);
    for (int j = 0; j < pw_apart; j++) {
        const double *in[2] = {pw_in(call, pw_first_apart + j), pw_in(call, pw_divisor)};
        double *out[1] = {pw_out(call, pw_together + j)};
        pw_over(call, out, 1, in, 2, pw_divide, 0.0, 0);
    }
}
#endif

void pw_bundle_run(struct pw_bundle_call *call)
{
    for (int64_t pass = 0; pass < call->passes; pass++) {
        pw_pass(call);
        pw_pass_ends();
    }
}
