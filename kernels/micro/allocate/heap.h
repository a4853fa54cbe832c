/* Blocks from the C library's heap. */
#ifndef PAGEWISE_HEAP_H
#define PAGEWISE_HEAP_H

#include <stdint.h>

/* The timed code, `passes` times: allocate `live` blocks of `bytes` bytes, a number in the first word of each (1, 2, ...)
 * and, with page > 0, a byte in each page of that many bytes; then read the numbers and free the blocks. `block` is room
 * for their addresses. Returns the sum of all numbers read, or -1 where memory ran out. */
int64_t pw_heap_cycle(int64_t passes, int64_t live, int64_t bytes, int64_t page, char **block);

/* As numbered in main.f90: what glibc does with freed blocks. */
enum { pw_heap_glibc = 1, pw_heap_return = 2, pw_heap_keep = 3 };

/* Have freed blocks returned to the system at once, or kept for reuse; glibc's own rule cannot be had again afterwards.
 * Returns 0, or 1 where the C library cannot do that. */
int32_t pw_heap_reuse(int64_t way);

#endif
