/* Vector loads and stores at any address. */
#ifndef PAGEWISE_ALIGNMENT_H
#define PAGEWISE_ALIGNMENT_H

#include "pw_vector.h"

enum { alignment_copy = 1, alignment_load = 2, alignment_store = 3 };

/* Bytes per iteration: at least two vectors of every width. */
enum { alignment_block = 128 };

/* Process n bytes, whole blocks, with vectors of `bits` bits; 0 if the build does not support that width:
 * copy them, combine them in `total` by exclusive or of their 8-byte words, or store the word `value` everywhere. */
int64_t pw_alignment(int64_t access, int64_t bits, int64_t n, char *to, const char *from, int64_t value, int64_t *total);

#endif
