/* Streaming stores; the hardware prefetches. */
#include "triad.h"

void pw_triad(int64_t n, double *a, const double *b, const double *c, const double *d, int64_t tuning)
{
    (void)tuning;
    int64_t head = triad_head(n, a);
    triad_scalar(0, head, a, b, c, d);
    int64_t done = triad_lines(head, n, a, b, c, d, pw_stream);
    triad_scalar(done, n, a, b, c, d);
    pw_stream_fence();
}
