/* Memory on pages of a chosen kind, and the proof of what it really lies on. Linux; the Fortran side is pw_pages. */
#ifndef PAGEWISE_PAGES_H
#define PAGEWISE_PAGES_H

#include <stdbool.h>
#include <stdint.h>

enum { PW_PAGES_NONE = 0, PW_PAGES_THP = 1, PW_PAGES_HUGETLBFS = 2 };

/* Failures; the values are the exit codes of core. */
enum { PW_PAGES_OK = 0, PW_PAGES_USAGE = 2, PW_PAGES_UNAVAILABLE = 3, PW_PAGES_SYSTEM = 4 };

enum { PW_PAGES_NAME = 16, PW_PAGES_TEXT = 512 };

/* What failed and what to do about it. Procedures that take one return its code. */
struct pw_pages_failure {
    int32_t code;
    char message[PW_PAGES_TEXT];
    char remedy[PW_PAGES_TEXT];
};

/* One array's memory. The user's bytes start `offset` bytes into the usable part of its mapping, which is aligned to
   a huge page and a whole number of them long; `mapping` includes what keeps it apart from other mappings. */
struct pw_pages_array {
    char name[PW_PAGES_NAME + 1];
    int32_t policy;
    char *address;
    int64_t bytes;
    int64_t offset;
    char *mapping;
    int64_t mapping_bytes;
};

/* The kernel's accounting of one array. */
struct pw_pages_account {
    int64_t huge_bytes;         /* of the array's bytes, those on huge pages */
    int64_t huge_page_size;     /* of the huge pages that back it; 0 where none does */
    int64_t page_size_observed; /* of what backs the larger part of it; 0 where nothing is resident */
    int32_t thp_eligible;       /* 1: the kernel would give it transparent huge pages of some size */
};

/* The page size that a policy asks for; 0 where this machine has none. */
int64_t pw_pages_size(int32_t policy);

/* Once per process, before the first allocation: set what holds for the whole process, and check that this machine
   and process can have the policy at all. */
int32_t pw_pages_begin(int32_t policy, struct pw_pages_failure *failure);

/* Check that the pool has the pages for all of `count` arrays of these bytes (offsets included) together, so that
   the remedy names the whole need. Policies without a pool always pass. */
int32_t pw_pages_require(int32_t policy, const int64_t *bytes, int32_t count, struct pw_pages_failure *failure);

/* Map array->bytes bytes, untouched. In: name, policy, bytes, offset; out: the rest. */
int32_t pw_pages_allocate(struct pw_pages_array *array, struct pw_pages_failure *failure);

/* Unmap and clear; an array that was never allocated is left alone. */
int32_t pw_pages_free(struct pw_pages_array *array, struct pw_pages_failure *failure);

/* Account for `count` arrays by /proc/self/smaps. A page that only partly belongs to an array is counted against the
   policy: where the kernel does not say which page it lacks, huge_bytes is the least that it can be under thp and
   hugetlbfs, and the most under none. */
int32_t pw_pages_account(const struct pw_pages_array *arrays, int32_t count, int32_t policy,
                         struct pw_pages_account *accounts, struct pw_pages_failure *failure);

/* After the first touch: fail if the arrays do not lie on the pages of the policy. Under thp what is short is
   collapsed into huge pages once, before the verdict. */
int32_t pw_pages_confirm(const struct pw_pages_array *arrays, int32_t count, int32_t policy,
                         struct pw_pages_failure *failure);

#endif
