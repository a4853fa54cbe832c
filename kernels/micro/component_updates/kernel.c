/* v_j(i) = v_j(i) + s*t_j(i) of six components at once. */
#define PW_UPDATES
#include "pw_bundle.h"

enum { pw_components = 6 };

#if defined(PW_LOOP_COMPILER)
void pw_loop(int64_t n, int64_t stride, double *a, double *b, double *c, double *d, double *e, double *f, const double *t,
             double s);

static void pw_fp64_loop(const struct pw_bundle_call *call, double s)
{
    pw_loop(call->elements, call->stride, pw_out(call, 0), pw_out(call, 1), pw_out(call, 2), pw_out(call, 3), pw_out(call, 4),
            pw_out(call, 5), pw_in(call, 0), s);
}
#endif

#define PW_WORK "component_updates.h"
#include "pw_bundle_types.h"
