/* Skips the last group of every call: validation must detect it. */
#define pw_arithmetic_run pw_arithmetic_run_short
#include "kernel.c"
#undef pw_arithmetic_run

#include "pw_broken.h"

int32_t pw_arithmetic_run(struct arithmetic_call *call)
{
    call->elements--;
    const int32_t status = pw_arithmetic_run_short(call);
    call->elements++;
    if (status == arithmetic_ok && call->passes > 0 && call->type == PW_FP64) pw_spoil(call->x, sizeof(double));
    return status;
}
