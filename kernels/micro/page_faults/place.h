/* Placing the pages of a mapping. */
#ifndef PAGEWISE_PLACE_H
#define PAGEWISE_PLACE_H

#include <stdint.h>

/* The timed code: write into the pages first..last-1 of `page` bytes each their numbers, once a page. */
void pw_place_touch(char *start, int64_t page, int64_t first, int64_t last);

/* Have the kernel place these pages at once (MADV_POPULATE_WRITE, Linux 5.14). 0, or the errno. */
int32_t pw_place_advise(char *start, int64_t page, int64_t first, int64_t last);

/* Map the pages anew at the same addresses, placed by the mapping itself (MAP_POPULATE), in pages from a pool of
 * pool_page bytes or, where this is 0, in base pages. 0, or the errno. */
int32_t pw_place_map(char *start, int64_t bytes, int64_t pool_page);

/* Of these pages, those which do not hold their numbers. */
int64_t pw_place_wrong(const char *start, int64_t page, int64_t first, int64_t last);

#endif
