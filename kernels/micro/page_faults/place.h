/* Placing the pages of a mapping. */
#ifndef PAGEWISE_PLACE_H
#define PAGEWISE_PLACE_H

#include <stdint.h>

/* The timed code: write their numbers to the pages first..last-1 of `page` bytes each, once per page. */
void pw_place_touch(void *start, int64_t page, int64_t first, int64_t last);

/* Make the operating system place these pages at once (MADV_POPULATE_WRITE, Linux 5.14). 0, or the errno. */
int32_t pw_place_advise(void *start, int64_t page, int64_t first, int64_t last);

/* Map the pages again at the same addresses, placed by the mapping itself (MAP_POPULATE), on pages of the hugetlb pool of
 * pool_page bytes or, if this is 0, on base pages. 0, or the errno. */
int32_t pw_place_map(void *start, int64_t bytes, int64_t pool_page);

/* The number of these pages that do not contain their numbers. */
int64_t pw_place_wrong(const void *start, int64_t page, int64_t first, int64_t last);

#endif
