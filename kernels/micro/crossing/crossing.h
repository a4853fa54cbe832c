/* Accesses that cross boundaries. */
#ifndef PAGEWISE_CROSSING_H
#define PAGEWISE_CROSSING_H

#include <stdint.h>

enum { crossing_load = 1, crossing_store = 2, crossing_forward = 3 };

/* Bytes from place to place, and accesses per iteration: enough to make the loop's overhead small. */
enum { apart = 4096, together = 4 };

/* Access `rounds` times each of `places` places, a multiple of `together`, which are `apart` bytes apart, the first at `first`, with the
 * width `simd`: load and add the 8-byte words to `total`; store the word `value` everywhere; or, at the first place only,
 * load what the previous access stored, add 1 to each word and store it. Returns 0, or 1 if the build does not support the
 * width. */
int32_t pw_crossing(int32_t access, int32_t simd, int64_t rounds, int64_t places, void *first, int64_t value, int64_t *total);

#endif
