/* Memory on pages of a chosen kind, and page verification: which pages it really is on. Linux; the Fortran side is
   pw_pages. */
#ifndef PAGEWISE_PAGES_H
#define PAGEWISE_PAGES_H

#include <stdbool.h>
#include <stdint.h>

/* A policy: its kind, and the page size if one was named. By name: thp, thp:64k, hugetlbfs:1g. */
enum { PW_PAGES_NONE = 0, PW_PAGES_THP = 1, PW_PAGES_HUGETLBFS = 2 }; /* further kinds: policies.json */
struct pw_pages_policy {
    int32_t kind;
    int64_t page_size; /* 0: the default of the kind, see pw_pages_size */
};

/* The source of an array's memory: a separate mapping, or part of a large array of the program (.bss). */
enum { PW_PAGES_DYNAMIC = 0, PW_PAGES_STATIC = 1 };

/* Failures; the values are the exit codes of core. */
enum { PW_PAGES_OK = 0, PW_PAGES_USAGE = 2, PW_PAGES_UNAVAILABLE = 3, PW_PAGES_SYSTEM = 4 };

enum { PW_PAGES_NAME = 31, PW_PAGES_TEXT = 1024 };

/* What failed and what to do about it. Procedures with such an argument return its code. */
struct pw_pages_failure {
    int32_t code;
    char message[PW_PAGES_TEXT];
    char remedy[PW_PAGES_TEXT];
};

/* The operating system's counts so far, on the whole machine, of transparent huge pages of one size. */
struct pw_pages_counts {
    int64_t faulted; /* allocated at a first touch */
    int64_t lost;    /* refused at a first touch, or split afterwards */
};

/* One array's memory. The user's bytes start `offset` bytes into the usable part of its mapping, which is aligned to
   a huge page and a whole number of them long; `mapping` includes what keeps it apart from other mappings. */
struct pw_pages_array {
    char name[PW_PAGES_NAME + 1];
    struct pw_pages_policy policy;
    int32_t allocation;
    char *address;
    int64_t bytes;
    int64_t offset;
    char *mapping;
    int64_t mapping_bytes;
    struct pw_pages_counts before; /* before its allocation; of the policy's size */
};

/* The operating system's accounting of one array. */
struct pw_pages_account {
    int64_t huge_bytes;         /* the array's bytes on huge pages */
    int64_t huge_page_size;     /* size of the huge pages that back it; 0 if none */
    int64_t page_size_observed; /* page size of the larger part of it; 0 if nothing is resident */
    int32_t thp_eligible;       /* 1: it is eligible for transparent huge pages of some size */
    /* Source of these numbers: smaps, kpageflags or thp_stats. */
    char method[PW_PAGES_NAME + 1];
};

/* The names of the policies that can be requested on this machine, separated by '|'. */
void pw_pages_names(char *text, int32_t length);

/* The policy called `name`; its size may be in capitals, as in hugetlbfs:2M. */
int32_t pw_pages_policy_from_name(const char *name, struct pw_pages_policy *policy, struct pw_pages_failure *failure);

/* The name of the policy; empty if there is no such policy. */
void pw_pages_policy_name(const struct pw_pages_policy *policy, char name[PW_PAGES_NAME + 1]);

/* Whether Fujitsu's libmpg provides the pages, which the program is linked with. */
bool pw_pages_by_libmpg(const struct pw_pages_policy *policy);

/* The kind of pages of a policy, for every caller: PW_PAGES_NONE, PW_PAGES_THP or PW_PAGES_HUGETLBFS. */
int32_t pw_pages_nature(const struct pw_pages_policy *policy);

/* The page size that a policy requests; 0 if this machine does not support it. */
int64_t pw_pages_size(const struct pw_pages_policy *policy);

/* Once per process, before the first allocation: make the settings that hold for the whole process, and check that machine
   and process support the policy. */
int32_t pw_pages_begin(const struct pw_pages_policy *policy, struct pw_pages_failure *failure);

/* Bytes of the program's static memory; 0: it is linked without any, as most programs. */
int64_t pw_pages_static_bytes(void);

/* Check that the hugetlb pool, or the static memory, has room for all `count` arrays of these sizes (offsets included)
   together, so that the remedy covers them all. */
int32_t pw_pages_require(const struct pw_pages_policy *policy, int32_t allocation, const int64_t bytes[], int32_t count,
                         struct pw_pages_failure *failure);

/* The flags of mmap for pages of a hugetlb pool: MAP_HUGETLB, and the size of its pages. */
int32_t pw_pages_pool_flags(int64_t page_size);

/* Map array->bytes bytes, untouched. In: name, policy, allocation, bytes, offset; out: the other fields. */
int32_t pw_pages_allocate(struct pw_pages_array *array, struct pw_pages_failure *failure);

/* Unmap and clear; an array that was never allocated is left unchanged. */
int32_t pw_pages_free(struct pw_pages_array *array, struct pw_pages_failure *failure);

/* Account for `count` arrays. A page that only partly belongs to an array counts against the policy: if the
   operating system does not report which page is missing, huge_bytes is the lower bound under thp and hugetlbfs, and the
   upper bound under none. Reads smaps, which does not distinguish mTHP from base pages; these are read
   from the flags of the page frames (root), else derived from the operating system's counts since the allocation. */
int32_t pw_pages_account(const struct pw_pages_array arrays[], int32_t count, const struct pw_pages_policy *policy,
                         struct pw_pages_account accounts[], struct pw_pages_failure *failure);

/* Page verification, after the first touch: fail if the arrays are not on the pages of the policy. Under thp of PMD size,
   missing huge pages are collapsed once before the decision. */
int32_t pw_pages_verify(const struct pw_pages_array arrays[], int32_t count, const struct pw_pages_policy *policy,
                         struct pw_pages_failure *failure);

#endif
