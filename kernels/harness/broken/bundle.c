/* A kernel of many streams that skips the last line of every call: validation must detect it. */
#define pw_bundle_run pw_bundle_run_short
#include "kernel.c"
#undef pw_bundle_run

#include "pw_broken.h"

int32_t pw_bundle_run(struct pw_bundle_call *call)
{
    call->elements -= pw_line_doubles;
    const int32_t status = pw_bundle_run_short(call);
    call->elements += pw_line_doubles;
    double *result = call->outputs ? call->out : &call->sum;
    pw_spoil(result, sizeof *result);
    return status;
}
