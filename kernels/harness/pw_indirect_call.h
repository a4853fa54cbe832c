/* A call of timed code with indirect access. */
#ifndef PAGEWISE_INDIRECT_CALL_H
#define PAGEWISE_INDIRECT_CALL_H

#include <stdint.h>

/* Types of the elements, numbered as in pw_elements.f90. */
enum { pw_indirect_fp64 = 1, pw_indirect_fp32 = 2 };

/* n indices c, from 1, into a or b or both; what is not addressed through them has n elements. d is used with PW_PAIRS only. */
struct pw_indirect_tuning {
    int64_t distance;  /* prefetch=software: distance in indices; block: the number of indices in a block */
    int64_t gather; /* prefetch=software: by SVE's gather prefetches */
};

void pw_indirect_run(int32_t type, int64_t n, void *a, const void *b, const void *d, const int32_t c[], double s,
                     const struct pw_indirect_tuning *tuning);

#endif
