/* Blocks from the C library's heap. */
#ifndef PAGEWISE_HEAP_H
#define PAGEWISE_HEAP_H

#include <stdint.h>

/* The timed code, `passes` times: allocate `live` blocks of `bytes` bytes, store a number in the first word of each (1, 2,
 * ...) and, with page > 0, a byte in each page of that many bytes; then read the numbers and free the blocks. `block` is
 * space for their addresses. Returns the sum of all numbers read, or -1 if memory ran out. */
int64_t pw_heap_cycle(int64_t passes, int64_t live, int64_t bytes, int64_t page, char *block[]);

/* The treatment of freed blocks by glibc, numbered as in driver.f90. */
enum { pw_heap_glibc = 1, pw_heap_return = 2, pw_heap_keep = 3 };

/* Return freed blocks to the system at once, or keep them for reuse; glibc's default rule is not available afterwards.
 * Returns 0, or 1 if the C library does not support that. */
int32_t pw_heap_reuse(int64_t way);

#endif
