/* A kernel of indirect access that skips the last index: validation must detect it. */
#define pw_indirect_run pw_indirect_run_short
#include "kernel.c"
#undef pw_indirect_run

#include "pw_broken.h"

void pw_indirect_run(int32_t type, int64_t n, void *a, const void *b, const void *d, const int32_t *c, double s,
                     const struct pw_indirect_tuning *tuning)
{
    pw_indirect_run_short(type, n - 1, a, b, d, c, s, tuning);
    pw_spoil(a, sizeof(double));
}
