/* a(i) = a(i) + s * b(c(i)), index by index. */
#ifndef PAGEWISE_INDIRECT_DAXPY_H
#define PAGEWISE_INDIRECT_DAXPY_H

#include "pw_indirect.h"

PW_INLINE void indirect_daxpy(double *a, const double *b, int64_t at, int64_t i)
{
    a[i] += 3.0 * b[at];
}

#endif
