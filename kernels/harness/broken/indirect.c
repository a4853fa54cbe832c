/* A kernel of indirect access that skips the last index, or uses the first half of its input again instead of the second.
 * Validation must detect each. */
#define pw_indirect_run pw_indirect_run_short
#include "kernel.c"
#undef pw_indirect_run

#include "pw_broken.h"

void pw_indirect_run(int32_t type, int64_t n, void *a, const void *b, const void *d, const int32_t *c, double s,
                     const struct pw_indirect_tuning *tuning)
{
    if (pw_broken_is("repeat")) {
        const int64_t half = n / 2;
        pw_indirect_run_short(type, half, a, b, d, c, s, tuning);
        pw_indirect_run_short(type, half, PW_SCATTERS ? a : (double *)a + half, b, d, PW_SCATTERS && !PW_GATHERS ? c + half : c, s,
                              tuning);
        return;
    }
    pw_indirect_run_short(type, n - 1, a, b, d, c, s, tuning);
    pw_spoil(a, sizeof(double));
}
