/* A kernel of streams that skips the last element, or line, of every call, or repeats a part of it: it reads the first elements, a
 * power of two of them, again instead of those that follow. Validation must detect each. */
#define pw_stream_run pw_stream_run_short
#include "kernel.c"
#undef pw_stream_run

#include "pw_broken.h"

#if defined(PW_ELEMENT)
enum { last = 1, arrays = PW_ARRAYS };
#else
enum { last = pw_line_doubles, arrays = 2 };
#endif

static int32_t repeat(struct pw_stream_call *call)
{
    const int64_t elements = call->elements;
    int64_t part = 1;
    while (4 * part <= elements) part *= 2;
    call->elements = part;
    int32_t status = pw_stream_run_short(call);
    double sum = call->sum;
    double *const a = call->array[0];
    if (call->outputs > 0 && call->inputs > 0) call->array[0] = a + part;
    if (status == PW_STREAM_OK) status = pw_stream_run_short(call);
    sum += call->sum;
    if (a) call->array[0] = a + 2 * part;
    for (int j = 1; j < arrays; j++) call->array[j] = (double *)call->array[j] + 2 * part;
    call->elements = elements - 2 * part;
    if (status == PW_STREAM_OK) status = pw_stream_run_short(call);
    call->sum += sum;
    return status;
}

int32_t pw_stream_run(struct pw_stream_call *call)
{
    if (pw_broken_is("repeat") && call->passes > 0) {
        struct pw_stream_call most = *call;
        const int32_t status = repeat(&most);
        call->sum = most.sum;
        return status;
    }
    call->elements -= last;
    const int32_t status = pw_stream_run_short(call);
    call->elements += last;
    if (status == PW_STREAM_OK && call->passes > 0 && call->type == PW_FP64)
        pw_spoil(call->outputs > 0 ? call->array[0] : &call->sum, sizeof(double));
    return status;
}
