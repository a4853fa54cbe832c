/* Sums in place whose loads follow stores to nearby addresses. */
#ifndef PAGEWISE_INTERLOCK_H
#define PAGEWISE_INTERLOCK_H

#include <stdint.h>

/* Numbered as in driver.f90. */
enum {
    interlock_contiguous = 1, /* vectors of 16-bit numbers, one after the other */
    interlock_gather,         /* gathered 32-bit numbers, scattered stores: all of a line before the next line */
    interlock_gather_apart,   /* the same, each access in another line than the one before */
    interlock_structure,      /* LD2 and ST2 of 32-bit pairs */
    interlock_structure_16    /* the same of 16-bit pairs */
};

/* Numbers of a block: gathers stay within one. */
enum { interlock_block = 64 };

/* y(i) = y(i) + sign x(i) for `n` 32-bit numbers, a multiple of interlock_block, whose sums fit 15 bits and are not negative: so
 * that accesses of 16 bits give the same, and those of 32 bits that begin between them. `offset`: bytes at which the accesses
 * begin, even. Those of contiguous vectors end with the n numbers; all others end as many bytes later. Returns 0, or 1 if the build
 * has no such instructions. */
int32_t pw_interlock(int32_t way, int64_t n, int64_t offset, int32_t sign, void *y, const void *x);

#endif
