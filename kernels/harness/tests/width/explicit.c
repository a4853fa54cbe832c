/* Explicit vectors of the build's width. */
#include "pw_vector.h"

void width_explicit(int64_t n, double *a, const double *b, const double *c);

void width_explicit(int64_t n, double *a, const double *b, const double *c)
{
    for (int64_t i = 0; i < n; i += pw_vector_doubles) pw_store(a + i, pw_load(b + i) * pw_load(c + i) + pw_load(a + i));
}
