/* Shared code of the page tests: checks, arrays with their pages, readings of the kernel's page tables independent of smaps, and ways
   to disturb a mapping without the allocator's knowledge. Start addresses of pages are rounded down, ends up. */
#ifndef PAGEWISE_CHECKS_H
#define PAGEWISE_CHECKS_H

#include "pages.h"

enum { KIB = 1024, MIB = 1024 * 1024, ODD_OFFSET = 4352, DYNAMIC = PW_PAGES_DYNAMIC, STATIC = PW_PAGES_STATIC };
#define THP_FOLDER "/sys/kernel/mm/transparent_hugepage/"

typedef struct pw_pages_policy policy_t;
typedef struct pw_pages_array array_t;
static const policy_t none = {PW_PAGES_NONE, 0}, thp = {PW_PAGES_THP, 0}, pool = {PW_PAGES_HUGETLBFS, 0};

/* The command line; arguments are empty if they are missing. */
extern const char *case_name, *argument[3];

/* Cases in array_cases.c. */
void policy_names(void);
void senseless_sizes(void);
void untouched(void);
void freed(void);
void static_arrays(void);
void static_too_large(void);
void static_pool(void);

extern int failures;
extern char skip_reason[PW_PAGES_TEXT]; /* not empty: the case cannot be tested on this machine */
extern struct pw_pages_failure failure; /* of the last call */

void check(bool holds, const char *format, ...) __attribute__((format(printf, 2, 3)));
void skip(const char *reason);

/* The call succeeded; or failed with this code, and message and remedy contain these texts, which are names, numbers and paths. */
void check_ok(int32_t code);
void check_failed(int32_t code, int32_t expected, const char *message, const char *remedy);

/* Begin a policy: whether the machine's settings allow it. If not, its other tests are void. */
bool available(policy_t policy);
policy_t policy_called(const char *name);

/* An array that is allocated under a policy and touched. */
array_t touched(policy_t policy, int64_t bytes);
array_t touched_as(const char *name, policy_t policy, int64_t bytes, int64_t offset, int32_t allocation);
array_t requested(const char *name, policy_t policy, int64_t bytes, int64_t offset, int32_t allocation);
void touch(const array_t *array);
void release(array_t *arrays, int count);

/* Allocating fails with this code and these texts. */
void check_refused(policy_t policy, int64_t bytes, int64_t offset, int32_t allocation, int32_t code, const char *message,
                   const char *remedy);

/* Three arrays as a kernel has them: odd lengths, staggered starts. */
void three_arrays(array_t arrays[3], policy_t policy, int64_t huge_size, int32_t allocation);

void check_verified(const array_t *arrays, int count, policy_t policy);
void check_rejected(const array_t *arrays, int count, policy_t policy, const char *message, const char *remedy);

/* This page size and coverage are observed for each array by `method`, and the page tables agree. */
void check_pages(const array_t *arrays, int count, policy_t policy, int64_t page_size, double coverage, const char *method);

int64_t base_page(void);
int64_t thp_size(void);
int64_t number_in(const char *format, ...) __attribute__((format(printf, 1, 2))); /* of a file; -1: it cannot be read */

/* Of the bytes from this address on: those mapped by an entry of huge size (PAGEMAP_SCAN, Linux 6.7); -1: the kernel does not
   report it. */
int64_t huge_bytes_of(char *address, int64_t bytes);

/* Of these: those in compound pages of any size, mTHP included (pagemap and kpageflags, root); -1: not permitted. */
int64_t compound_bytes_of(char *address, int64_t bytes);

/* Whether any page of the range belongs to a mapping that can be read. */
bool is_accessible(char *address, int64_t bytes);

/* The start of the page that holds the address. */
char *page_at(char *address);

/* Advise for or against transparent huge pages on the whole pages of huge size that hold the range. */
void advise(const array_t *array, int64_t bytes, bool huge);

#endif
