/* Blocks of the inputs loaded ahead; streaming stores. */
#include "triad.h"

void pw_triad(int64_t n, double *a, const double *b, const double *c, const double *d, int64_t tuning)
{
    triad_block(n, a, b, c, d, tuning, pw_stream);
    pw_stream_fence();
}
