/* A kernel of many streams that skips the last line of every call, or reads the first half of each input again instead of the
 * second. Validation must detect each. */
#define pw_bundle_run pw_bundle_run_short
#include "kernel.c"
#undef pw_bundle_run

#include "pw_broken.h"

static int32_t repeat(struct pw_bundle_call *call)
{
    const int64_t half = call->elements / 2 / pw_line_doubles * pw_line_doubles;
    struct pw_bundle_call second = *call;
    second.out += half;
    second.elements -= half;
    call->elements = half;
    (void)pw_bundle_run_short(call);
    const int32_t status = pw_bundle_run_short(&second);
    call->sum += second.sum;
    call->elements += second.elements;
    return status;
}

int32_t pw_bundle_run(struct pw_bundle_call *call)
{
    if (pw_broken_is("repeat") && call->passes > 0) return repeat(call);
    call->elements -= pw_line_doubles;
    const int32_t status = pw_bundle_run_short(call);
    call->elements += pw_line_doubles;
    double *result = call->outputs ? call->out : &call->sum;
    pw_spoil(result, sizeof *result);
    return status;
}
