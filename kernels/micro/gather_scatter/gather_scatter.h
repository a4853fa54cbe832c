/* a(c(i)) = b(c(i)), index by index. */
#ifndef PAGEWISE_GATHER_SCATTER_H
#define PAGEWISE_GATHER_SCATTER_H

#include "pw_indirect.h"

PW_INLINE void gather_scatter(double *a, const double *b, int64_t at, int64_t i)
{
    (void)i;
    a[at] = b[at];
}

#endif
