/* Prefetch instructions at a distance; streaming stores. */
#include "triad.h"

void pw_triad(int64_t n, double *a, const double *b, const double *c, const double *d, int64_t tuning)
{
    triad_software(n, a, b, c, d, tuning, pw_stream, 0);
    pw_stream_fence();
}
