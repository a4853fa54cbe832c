/* What the running kernel says about its huge pages. Private to kernels/pages. */
#ifndef PAGEWISE_PAGES_MACHINE_H
#define PAGEWISE_PAGES_MACHINE_H

#include "pages.h"

/* Record a failure; both texts are printf formats. Returns code. */
int32_t pw_pages_fail(struct pw_pages_failure *failure, int32_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void pw_pages_remedy(struct pw_pages_failure *failure, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The size of a transparent huge page that one page-table entry maps; 0: the kernel has none. */
int64_t pw_machine_thp_size(void);

/* The size of a huge page of the default pool; 0: the kernel has no hugetlbfs. */
int64_t pw_machine_pool_page_size(void);

/* What decides whether an advised mapping gets transparent huge pages of full size, and how it is set. */
struct pw_machine_switch {
    char path[128];
    char value[32];
};
void pw_machine_thp_switch(struct pw_machine_switch *found);

/* The default pool, in pages. */
struct pw_machine_pool {
    int64_t page_size, total, surplus, overcommit;
    int64_t available; /* free, and not promised to a mapping */
};
void pw_machine_pool(struct pw_machine_pool *pool);

/* `bytes` rounded up to a multiple of `size`. */
static inline int64_t pw_round_up(int64_t bytes, int64_t size)
{
    return (bytes + size - 1) / size * size;
}

#endif
