/* Vector loads and stores at any address. */
#ifndef PAGEWISE_ALIGNMENT_H
#define PAGEWISE_ALIGNMENT_H

#include "pw_vector.h"

/* Loads and stores: of contiguous vectors, of neighbours by their indices, and of structures of two numbers (LD2, ST2), with
 * numbers of 64 or 32 bits. Numbered as in driver.f90. */
enum {
    alignment_copy = 1,
    alignment_load = 2,
    alignment_store = 3,
    alignment_gather_64 = 4,
    alignment_gather_32 = 5,
    alignment_scatter_64 = 6,
    alignment_scatter_32 = 7,
    alignment_structure_load_64 = 8,
    alignment_structure_load_32 = 9,
    alignment_structure_store_64 = 10,
    alignment_structure_store_32 = 11
};

/* Bytes that every iteration divides: eight vectors of any width. */
enum { alignment_block = 512 };

/* Process n bytes, whole blocks, with vectors of `bits` bits; 0 if the build does not support that access or width:
 * copy them, combine them in `total` by exclusive or of their 8-byte words, or store the word `value` everywhere. */
int64_t pw_alignment(int64_t access, int64_t bits, int64_t n, void *to, const void *from, int64_t value, int64_t *total);

#endif
