/* Without barriers, mutual exclusion, work sharing and the last round: validation must detect each. */
#define PW_BROKEN
#define pw_overhead_run pw_overhead_run_unordered
#include "kernel.c"
#undef pw_overhead_run

#include "pw_broken.h"

void pw_overhead_run(const struct overhead_call *call)
{
    pw_overhead_run_unordered(call);
    pw_spoil(&shared_of(call)->atomic, sizeof(double));
    pw_spoil(&shared_of(call)->reduction, sizeof(double));
}
