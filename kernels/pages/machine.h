/* The huge pages of the running operating system. Private to kernels/pages. */
#ifndef PAGEWISE_PAGES_MACHINE_H
#define PAGEWISE_PAGES_MACHINE_H

#include "pages.h"

/* Record a failure; both texts are printf formats. Returns code. */
int32_t pw_pages_fail(struct pw_pages_failure *failure, int32_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int32_t pw_pages_remedy(struct pw_pages_failure *failure, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether /sys shows huge pages; if not, nothing is known of them. */
bool pw_machine_shows_huge_pages(void);

/* The size of a transparent huge page that one page-table entry maps; 0: not supported. */
int64_t pw_machine_thp_size(void);

/* The size of a huge page of the default hugetlb pool; 0: the operating system does not support hugetlbfs. */
int64_t pw_machine_pool_page_size(void);

/* The sizes of transparent huge pages, and of the hugetlb pools' pages, that the operating system offers: ascending, at most
   PW_MACHINE_SIZES. Return their number. */
enum { PW_MACHINE_SIZES = 24 };
int32_t pw_machine_thp_sizes(int64_t sizes[PW_MACHINE_SIZES]);
int32_t pw_machine_pool_sizes(int64_t sizes[PW_MACHINE_SIZES]);

/* The setting that decides whether an advised mapping gets transparent huge pages of this size, and where it is set. */
struct pw_machine_switch {
    char path[128];
    char value[32];
};
void pw_machine_thp_switch(int64_t page_size, struct pw_machine_switch *setting);

/* The smallest size of transparent huge pages above this one that an advised mapping can get; 0: none. */
int64_t pw_machine_thp_next(int64_t page_size);

/* The operating system's counts of transparent huge pages of this size; `faulted` is -1 if it does not count. */
void pw_machine_thp_counts(int64_t page_size, struct pw_pages_counts *counts);

/* The hugetlb pool of pages of this size. The numbers are in pages. */
struct pw_machine_pool {
    int64_t page_size, total, surplus, overcommit;
    int64_t available; /* free and not reserved by a mapping */
    int64_t allowed;   /* how many more of them the control groups leave to this process; INT64_MAX without a limit */
    char path[128];    /* the file that shows and sets `total` */
};
void pw_machine_pool(int64_t page_size, struct pw_machine_pool *pool);

/* Whether the policy requests mTHP: transparent huge pages below the PMD size, which smaps does not show. */
bool pw_pages_is_mthp(const struct pw_pages_policy *policy);

/* `bytes` rounded up to a multiple of `size`. */
static inline int64_t pw_round_up(int64_t bytes, int64_t size)
{
    return (bytes + size - 1) / size * size;
}

/* The page type that Fujitsu's libmpg is set to (none, thp, hugetlbfs); NULL if it is not loaded. */
const char *pw_machine_fjmpg_type(void);

#endif
