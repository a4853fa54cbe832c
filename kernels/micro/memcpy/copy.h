/* Ways to copy a block of doubles. */
#ifndef PAGEWISE_COPY_H
#define PAGEWISE_COPY_H

#include "pw_vector.h"
#include "pw_widths.h"
#include "pw_zero.h"

/* Numbered as in driver.f90. */
enum { pw_copy_libc = 1, pw_copy_loop = 2, pw_copy_vector = 3, pw_copy_rep_movsb = 4 };

/* `copies` copies of n doubles, a multiple of 8, from source to target, at places that are multiples of n: the first at
 * `place`, each next one `stride` places later, modulo `places`, a power of two. Returns the place after the
 * last. Both arrays start at a cache line. */
int64_t pw_copy(int64_t way, int64_t copies, int64_t n, int64_t place, int64_t stride, int64_t places, double target[],
                const double source[]);

/* Whether the processor supports pw_copy_rep_movsb. */
int32_t pw_copy_has_string_move(void);

#endif
