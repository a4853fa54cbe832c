/* Indirect access with explicit prefetch, for the kernels whose driver is pw_indirect.f90. */
#ifndef PAGEWISE_INDIRECT_H
#define PAGEWISE_INDIRECT_H

#include "pw_vector.h"

/* The timed kernel, one implementation per variant: n indices c, from 1, into a or b or both; what is not addressed through
 * them has n elements. `tuning` is the prefetch distance in indices (software), or the indices of a block
 * (block); otherwise indirect_vector if the compiler may use gather and scatter instructions. */
enum { indirect_vector = 1 };
void pw_indirect_run(int64_t n, double *a, const double *b, const int32_t *c, int64_t tuning);

/* The work of a kernel for index number i, whose value is `at` (from 0). */
typedef void (*indirect_work)(double *a, const double *b, int64_t at, int64_t i);
/* How it prefetches the lines that an index names. */
typedef void (*indirect_ask)(const double *a, const double *b, int64_t at);

/* One by one: the index is kept from the vectoriser, because these variants must not contain its gather instructions. */
PW_INLINE void indirect_plain(int64_t first, int64_t last, double *restrict a, const double *restrict b, const int32_t *c,
                              indirect_work work)
{
    for (int64_t i = first; i < last; i++) {
        int64_t at = c[i] - 1;
        __asm__("" : "+r"(at));
        work(a, b, at, i);
    }
}

/* The lines of an index are prefetched `distance` indices ahead. */
PW_INLINE void indirect_software(int64_t n, double *restrict a, const double *restrict b, const int32_t *c, int64_t distance,
                                 indirect_work work, indirect_ask ask)
{
    int64_t i = 0;
    for (; i + distance < n; i++) {
        ask(a, b, c[i + distance] - 1);
        work(a, b, c[i] - 1, i);
    }
    indirect_plain(i, n, a, b, c, work);
}

/* The lines of a block of indices are all loaded before the first of them is processed. */
PW_INLINE void indirect_block(int64_t n, double *restrict a, const double *restrict b, const int32_t *c, int64_t block,
                              indirect_work work, indirect_ask ask)
{
    for (int64_t first = 0; first < n; first += block) {
        int64_t last = first + block < n ? first + block : n;
        for (int64_t i = first; i < last; i++) ask(a, b, c[i] - 1);
        indirect_plain(first, last, a, b, c, work);
    }
}

#endif
