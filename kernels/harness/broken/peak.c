/* Independent multiply-adds without those of the last group: validation must detect it. */
#define pw_peak_run pw_peak_run_short
#include "kernel.c"
#undef pw_peak_run

#include "pw_broken.h"

int32_t pw_peak_run(struct pw_peak_call *call)
{
    call->elements--;
    const int32_t status = pw_peak_run_short(call);
    call->elements++;
    if (status == PW_PEAK_OK && call->passes > 0) pw_spoil(call->x, call->type == PW_PEAK_FP64 ? 8 : 4);
    return status;
}
