/* v_j(i) = v_j(i) + s*t_j(i) of six components at once. */
enum { pw_components = 6 };

#define PW_FLIPS
#define PW_LOOP_PARAMETERS                                                                                                      \
    int64_t n, int64_t stride, double *a, double *b, double *c, double *d, double *e, double *f, const double *t, double s
#define PW_LOOP_ARGUMENTS                                                                                                       \
    call->elements, call->stride, pw_out(call, 0), pw_out(call, 1), pw_out(call, 2), pw_out(call, 3), pw_out(call, 4),          \
        pw_out(call, 5), pw_in(call, 0), s
#define PW_WORK "component_updates.h"
#include "pw_stream.h"
