/* Skips the last block: validation must detect it. */
#include "interlock.h"
#include "pw_broken.h"

int32_t pw_interlock(int32_t way, int64_t n, int64_t offset, int32_t sign, void *y, const void *x)
{
    (void)way, (void)offset;
    int32_t *const to = y;
    const int32_t *const from = x;
    for (int64_t i = 0; i < n - interlock_block; i++) to[i] += sign * from[i];
    if (n > 0) pw_spoil(y, sizeof *to);
    return 0;
}
