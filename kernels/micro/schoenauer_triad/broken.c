/* A triad that leaves the last element of every call as it was: the check must find it. */
#include "triad.h"

void pw_triad(int64_t n, double *a, const double *b, const double *c, const double *d, int64_t tuning)
{
    (void)tuning;
    triad_scalar(0, n - 1, a, b, c, d);
}
