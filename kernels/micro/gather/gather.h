/* a(i) = b(c(i)), index by index. */
#ifndef PAGEWISE_GATHER_H
#define PAGEWISE_GATHER_H

#include "pw_indirect.h"

PW_INLINE void gather(double *a, const double *b, int64_t at, int64_t i)
{
    a[i] = b[at];
}

#endif
