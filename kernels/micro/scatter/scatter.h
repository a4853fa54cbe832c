/* a(c(i)) = b(i), index by index. */
#ifndef PAGEWISE_SCATTER_H
#define PAGEWISE_SCATTER_H

#include "pw_indirect.h"

PW_INLINE void scatter(double *a, const double *b, int64_t at, int64_t i)
{
    a[at] = b[i];
}

#endif
