/* Skips the last block: validation must detect it. */
#include "interlock.h"
#include "pw_broken.h"

int32_t pw_interlock(int32_t way, int64_t n, int64_t offset, int32_t sign, int32_t *y, const int32_t *x)
{
    (void)way, (void)offset;
    for (int64_t i = 0; i < n - interlock_block; i++) y[i] += sign * x[i];
    if (n > 0) pw_spoil(y, sizeof *y);
    return 0;
}
