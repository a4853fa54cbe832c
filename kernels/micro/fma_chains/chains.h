/* FMA dependency chains over rows of eight numbers. */
#ifndef PAGEWISE_CHAINS_H
#define PAGEWISE_CHAINS_H

#include <stdint.h>

/* Numbers of a row, and the longest chain. */
enum { chains_row = 8, chains_longest = 9 };

/* order: rows in source order, or several rows at once, which requires independent rows. */
enum { chains_source = 1, chains_interleaved = 2 };

/* The most vectors whose chains are in flight at once in an explicit width: as many as a multiply-add of 4 cycles in two units
 * needs, if there are registers for an argument and a sum each. */
#if defined(__AVX512VL__) || defined(__aarch64__)
#define PW_CHAINS_MOST 8
#else
#define PW_CHAINS_MOST 4
#endif
int64_t pw_chains_most(void);

/* y(i,j) = c(0) + x*(c(1) + x*(... + x*c(fmas))), where x = y(i,j-distance), for j = 0 to rows-1 and i = 0 to 7. `y` is the
 * row 0, and the rows before it exist. `at_once` vectors are interleaved in an explicit width, a power of two up to
 * PW_CHAINS_MOST. Returns 0, or 1 if the build has no vectors of the width `simd`. */
int32_t pw_chains(int32_t simd, int32_t order, int64_t at_once, int64_t fmas, int64_t rows, int64_t distance, const double c[],
                  double y[]);

#endif
