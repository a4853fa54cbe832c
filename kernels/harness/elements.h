/* Elements of any kernel type, to and from doubles. */
#ifndef PAGEWISE_ELEMENTS_H
#define PAGEWISE_ELEMENTS_H

#include "pw_stream_call.h"

/* Set elements first (from 0) to first+n-1 of an array to the values, which the type must represent, or read them. Return
 * PW_STREAM_NO_TYPE if the compiler does not support the type. */
int32_t pw_elements_put(int32_t type, void *array, int64_t first, int64_t n, const double *values);
int32_t pw_elements_get(int32_t type, const void *array, int64_t first, int64_t n, double *values);

#endif
