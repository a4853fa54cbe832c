/* q_j(i) = p_j(i) / d(i): five quotients in one loop, one of them by another divisor, then six loops of one each.
 * Inputs: the metric, the divisor, four more components, six tracers. */
enum { pw_divisor = 1, pw_together = 5, pw_first_apart = 6, pw_apart = 6 };

#define PW_LOOP_PARAMETERS                                                                                                      \
    int64_t n, int64_t stride, double *q, double *tracer, const double *metric, const double *p, const double *p_tracer
#define PW_LOOP_ARGUMENTS                                                                                                       \
    call->elements, call->stride, pw_out(call, 0), pw_out(call, pw_together), pw_in(call, 0), pw_in(call, pw_divisor),          \
        pw_in(call, pw_first_apart)
#define PW_WORK "division_streams.h"
#include "pw_stream.h"
