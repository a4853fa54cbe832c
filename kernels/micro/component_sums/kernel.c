/* t_j(i) = t0_j(i) + t1_j(i) + t2_j(i) of six components at once. Inputs: t0, t1, t2, six components each. */
enum { pw_components = 6 };

#define PW_LOOP_PARAMETERS                                                                                                      \
    int64_t n, int64_t stride, double *a, double *b, double *c, double *d, double *e, double *f, const double *t0,              \
        const double *t1, const double *t2
#define PW_LOOP_ARGUMENTS                                                                                                       \
    call->elements, call->stride, pw_out(call, 0), pw_out(call, 1), pw_out(call, 2), pw_out(call, 3), pw_out(call, 4),          \
        pw_out(call, 5), pw_in(call, 0), pw_in(call, pw_components), pw_in(call, 2 * pw_components)
#define PW_WORK "component_sums.h"
#include "pw_stream.h"
