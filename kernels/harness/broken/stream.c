/* A streaming kernel that skips the last element of every call: validation must detect it. */
#define pw_stream_run pw_stream_run_short
#include "kernel.c"
#undef pw_stream_run

#include "pw_broken.h"

int32_t pw_stream_run(struct pw_stream_call *call)
{
    call->elements--;
    const int32_t status = pw_stream_run_short(call);
    call->elements++;
    if (status == PW_STREAM_OK && call->passes > 0 && call->type == PW_FP64) {
#if defined(PW_REDUCES)
        pw_spoil(&call->sum, sizeof call->sum);
#else
        pw_spoil(call->array[0], sizeof(double));
#endif
    }
    return status;
}
