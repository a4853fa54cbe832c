/* The other ways to make the operating system place pages, and the check. */
#define _GNU_SOURCE
#include "pages.h"
#include "place.h"

#include <errno.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* asm-generic/mman-common.h */
#endif

int32_t pw_place_advise(void *start, int64_t page, int64_t first, int64_t last)
{
    if (last <= first) return 0;
    return madvise((char *)start + first * page, (size_t)((last - first) * page), MADV_POPULATE_WRITE) == 0 ? 0 : errno;
}

int32_t pw_place_map(void *start, int64_t bytes, int64_t pool_page)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE;
    if (pool_page > 0) flags |= pw_pages_pool_flags(pool_page);
    return mmap(start, (size_t)bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == start ? 0 : errno;
}

int64_t pw_place_wrong(const void *start, int64_t page, int64_t first, int64_t last)
{
    int64_t wrong = 0;
    for (int64_t i = first; i < last; i++) wrong += *(const int64_t *)(const void *)((const char *)start + i * page) != i + 1;
    return wrong;
}
