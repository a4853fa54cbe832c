/* q_j(i) = p_j(i) / d(i): five quotients in one loop, one of them by another divisor, then six loops of one each.
 * Inputs: the metric, the divisor, four more components, six tracers. */
#include "pw_bundle.h"

enum { pw_divisor = 1, pw_together = 5, pw_first_apart = 6, pw_apart = 6 };

#if defined(PW_LOOP_COMPILER)
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
    pw_vector divisor[pw_line_vectors], q[pw_line_vectors];
    PW_EACH(k, pw_line_vectors) divisor[k] = pw_part(in[pw_divisor] + i, k);
    PW_EACH(k, pw_line_vectors) q[k] = divisor[k] / pw_part(in[0] + i, k);
    pw_put(out[0] + i, q);
    PW_EACH(j, pw_together - 1)
    {
        PW_EACH(k, pw_line_vectors) q[k] = pw_part(in[pw_divisor + 1 + j] + i, k) / divisor[k];
        pw_put(out[1 + j] + i, q);
    }
}

PW_INLINE void pw_divide(double *const *out, const double *const *in, int64_t i, pw_vector s, pw_vector *sum)
{
    (void)s, (void)sum;
    pw_vector q[pw_line_vectors];
    PW_EACH(k, pw_line_vectors) q[k] = pw_part(in[0] + i, k) / pw_part(in[1] + i, k);
    pw_put(out[0] + i, q);
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
