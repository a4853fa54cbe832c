/* Page verification: the pages that the arrays are on, by the operating system's accounting, against those requested. */
#define _GNU_SOURCE
#include "frames.h"
#include "machine.h"
#include "system.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1, asm-generic/mman-common.h */
#endif

/* The least share of an array's bytes on the requested pages; a run below it is excluded from comparisons. */
static const double least_coverage = 0.99;

/* The pages in one range of addresses, in bytes. */
struct range {
    uintptr_t start, end;
    int64_t resident, thp, pool, pool_page_size; /* from smaps */
    bool thp_eligible;
    int64_t mthp;         /* on transparent huge pages of the requested size, if that is below the PMD size */
    int64_t largest_part; /* the page size of most of it, 0 if only smaps is known */
};

/* All pages that hold bytes of the array. */
static struct range range_of(const struct pw_pages_array *array, int64_t page_size)
{
    uintptr_t size = (uintptr_t)page_size;
    uintptr_t first = (uintptr_t)array->address;
    uintptr_t end = first + (uintptr_t)array->bytes;
    return (struct range){.start = first / size * size, .end = (end + size - 1) / size * size};
}

/* Add one line of an smaps entry inside the range. */
static void add_line(struct range *range, const char *line, int64_t *page_size)
{
    char name[32];
    long long value;
    if (sscanf(line, "%31[^:]: %lld", name, &value) != 2) return;
    int64_t bytes = value * 1024;
    if (strcmp(name, "KernelPageSize") == 0) *page_size = bytes;
    if (strcmp(name, "Rss") == 0) range->resident += bytes;
    if (strcmp(name, "AnonHugePages") == 0) range->thp += bytes;
    if (strcmp(name, "THPeligible") == 0 && value > 0) range->thp_eligible = true;
    /* Shared: after a fork. Resident, although Rss excludes hugetlb pages. */
    if ((strcmp(name, "Private_Hugetlb") == 0 || strcmp(name, "Shared_Hugetlb") == 0) && bytes > 0) {
        range->pool += bytes;
        range->resident += bytes;
        range->pool_page_size = *page_size;
    }
}

/* Fill in all ranges in one pass: each reading makes the kernel walk every page table of the process. A range may consist of
   several entries, because the kernel splits a mapping where its protection or advice changes. */
static int32_t read_smaps(struct range *ranges, int32_t count, struct pw_pages_failure *failure)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    if (file == NULL) {
        pw_pages_fail(failure, PW_PAGES_SYSTEM, "page verification cannot read /proc/self/smaps: %s",
                      strerror(errno));
        return pw_pages_remedy(failure, "mount /proc; and use a kernel with CONFIG_PROC_PAGE_MONITOR");
    }
    char *line = NULL;
    size_t room = 0;
    struct range *inside = NULL;
    int64_t page_size = 0;
    while (getline(&line, &room, file) >= 0) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
            inside = NULL;
            for (int32_t i = 0; i < count; i++)
                if (start < ranges[i].end && end > ranges[i].start) inside = &ranges[i];
        } else if (inside != NULL) {
            add_line(inside, line, &page_size);
        }
    }
    free(line);
    fclose(file);
    return PW_PAGES_OK;
}

/* For messages: rounded up, so that even one byte is visible. */
static long long kib(int64_t bytes)
{
    return (bytes + 1023) / 1024;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* mTHP from the page frames: exact. False: not permitted. */
static bool count_frames(struct range *ranges, int32_t count, int64_t page_size)
{
    for (int32_t i = 0; i < count; i++) {
        struct pw_frames frames;
        if (!pw_frames_count(ranges[i].start, ranges[i].end, page_size, pw_machine_thp_size(), &frames)) return false;
        int most = 0;
        for (int order = 1; order < PW_FRAMES_ORDERS; order++)
            if (frames.by_order[order] > frames.by_order[most]) most = order;
        ranges[i].mthp = frames.whole_bytes;
        ranges[i].largest_part = pw_system_base_page_size() << most;
    }
    return true;
}

/* The same from the machine-wide counts since the first of the arrays was allocated: every page that
   was not allocated, was refused or was split counts against each array. */
static int32_t conclude(const struct pw_pages_array *arrays, struct range *ranges, int32_t count, int64_t page_size,
                        struct pw_pages_failure *failure)
{
    struct pw_pages_counts now;
    pw_machine_thp_counts(page_size, &now);
    if (now.faulted < 0) {
        pw_pages_fail(failure, PW_PAGES_UNAVAILABLE,
                      "policy thp: transparent huge pages of %lld KiB cannot be verified: only root may read the flags of "
                      "page frames, and this kernel has no statistics per page size",
                      (long long)page_size / 1024);
        return pw_pages_remedy(failure, "run it as root, or use Linux 6.10 or later");
    }
    int64_t needed = 0, given = 0, lost = 0;
    for (int32_t i = 0; i < count; i++) {
        const struct pw_pages_counts *before = &arrays[i].before;
        needed += (int64_t)(ranges[i].end - ranges[i].start) / page_size;
        if (now.faulted - before->faulted > given) given = now.faulted - before->faulted;
        if (now.lost - before->lost > lost) lost = now.lost - before->lost;
    }
    int64_t missing = (given < needed ? needed - given : 0) + lost;
    for (int32_t i = 0; i < count; i++) {
        struct range *range = &ranges[i];
        int64_t there = smaller(range->resident, (int64_t)(range->end - range->start)) - range->thp;
        range->mthp = there > missing * page_size ? there - missing * page_size : 0;
    }
    return PW_PAGES_OK;
}

/* Bytes on huge pages: of any kind under none, else of the kind and size that the policy requests. */
static int64_t huge_of(const struct range *range, const struct pw_pages_policy *policy)
{
    if (pw_pages_is_mthp(policy)) return range->mthp;
    switch (pw_pages_nature(policy)) {
    case PW_PAGES_THP: return range->thp;
    case PW_PAGES_HUGETLBFS: return range->pool_page_size == pw_pages_size(policy) ? range->pool : 0;
    default: return range->thp + range->pool;
    }
}

static struct pw_pages_account account_of(const struct pw_pages_array *array, const struct range *range,
                                          const struct pw_pages_policy *policy)
{
    struct pw_pages_account account = {.thp_eligible = range->thp_eligible};
    int64_t huge = huge_of(range, policy);
    int64_t short_of = (int64_t)(range->end - range->start) - huge;
    if (pw_pages_nature(policy) == PW_PAGES_NONE)
        account.huge_bytes = smaller(huge, array->bytes);
    else if (short_of < array->bytes)
        account.huge_bytes = smaller(array->bytes - short_of, array->bytes);
    if (pw_pages_nature(policy) != PW_PAGES_NONE && huge > 0)
        account.huge_page_size = pw_pages_size(policy);
    else if (huge > 0)
        account.huge_page_size = range->pool > range->thp ? range->pool_page_size : pw_machine_thp_size();
    if (2 * account.huge_bytes > array->bytes)
        account.page_size_observed = account.huge_page_size;
    else if (range->resident > 0)
        account.page_size_observed = range->largest_part > 0 ? range->largest_part : pw_system_base_page_size();
    return account;
}

int32_t pw_pages_account(const struct pw_pages_array *arrays, int32_t count, const struct pw_pages_policy *policy,
                         struct pw_pages_account *accounts, struct pw_pages_failure *failure)
{
    int64_t page_size = pw_pages_size(policy);
    struct range *ranges = calloc((size_t)count + 1, sizeof *ranges);
    if (page_size == 0 || ranges == NULL) {
        free(ranges);
        if (page_size == 0) return pw_pages_begin(policy, failure);
        return pw_pages_fail(failure, PW_PAGES_SYSTEM, "cannot allocate memory to verify %d arrays", count);
    }
    for (int32_t i = 0; i < count; i++) ranges[i] = range_of(&arrays[i], page_size);
    int32_t code = read_smaps(ranges, count, failure);
    const char *method = "smaps";
    if (code == PW_PAGES_OK && pw_pages_is_mthp(policy)) {
        method = "kpageflags";
        if (!count_frames(ranges, count, page_size)) {
            method = "thp_stats";
            code = conclude(arrays, ranges, count, page_size, failure);
        }
    }
    for (int32_t i = 0; code == PW_PAGES_OK && i < count; i++) {
        accounts[i] = account_of(&arrays[i], &ranges[i], policy);
        snprintf(accounts[i].method, sizeof accounts[i].method, "%s", method);
    }
    free(ranges);
    return code;
}

static int32_t verify_none(const struct pw_pages_array *arrays, int32_t count, const struct pw_pages_account *accounts,
                            struct pw_pages_failure *failure)
{
    for (int32_t i = 0; i < count; i++) {
        if (accounts[i].huge_bytes > 0)
            pw_pages_fail(failure, PW_PAGES_UNAVAILABLE, "policy none: array %s has %lld KiB on huge pages of %lld KiB",
                          arrays[i].name, kib(accounts[i].huge_bytes), kib(accounts[i].huge_page_size));
        else if (accounts[i].thp_eligible) /* smaps does not show mTHP */
            pw_pages_fail(failure, PW_PAGES_UNAVAILABLE,
                          "policy none: the kernel may give array %s transparent huge pages of some size",
                          arrays[i].name);
        else
            continue;
        return pw_pages_remedy(failure, "do not call madvise on the arrays or undo PR_SET_THP_DISABLE; or, as root: echo "
                                        "never > /sys/kernel/mm/transparent_hugepage/enabled");
    }
    return PW_PAGES_OK;
}

static bool is_short(const struct pw_pages_array *array, const struct pw_pages_account *account, double coverage)
{
    return (double)account->huge_bytes < coverage * (double)array->bytes;
}

/* The kernel ends a collapse at the first huge page that it does not get. While it compacts memory, it gets more later. */
enum { PAUSES = 20, PAUSE_NS = 50000000 };

/* Collapse each array with missing huge pages. Returns the errno of the last refusal, or 0. */
static int collapse(const struct pw_pages_array *arrays, int32_t count, const struct pw_pages_account *accounts,
                    int64_t page_size)
{
    int error = 0, pauses = 0;
    for (int32_t i = 0; i < count; i++) {
        if (!is_short(&arrays[i], &accounts[i], 1.0)) continue;
        struct range range = range_of(&arrays[i], page_size);
        char *start = arrays[i].address - ((uintptr_t)arrays[i].address - range.start);
        while (madvise(start, range.end - range.start, MADV_COLLAPSE) != 0) {
            error = errno;
            if ((error != ENOMEM && error != EAGAIN) || pauses == PAUSES) break;
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
            pauses++;
        }
    }
    return error;
}

/* The failure names how much is missing over all arrays, and the first array with missing pages. */
static int32_t verify_huge(const struct pw_pages_array *arrays, int32_t count, const struct pw_pages_policy *policy,
                            const struct pw_pages_account *accounts, int collapse_error,
                            struct pw_pages_failure *failure)
{
    int64_t bytes = 0, huge = 0;
    int32_t first = -1;
    for (int32_t i = 0; i < count; i++) {
        bytes += arrays[i].bytes;
        huge += accounts[i].huge_bytes;
        if (first < 0 && is_short(&arrays[i], &accounts[i], least_coverage)) first = i;
    }
    if (first < 0) return PW_PAGES_OK;
    int64_t page_size = pw_pages_size(policy), observed = accounts[first].page_size_observed;
    char why[160] = "", name[PW_PAGES_NAME + 1];
    if (pw_pages_is_mthp(policy) && observed != page_size)
        snprintf(why, sizeof why, ", most of it on pages of %lld KiB by %s", kib(observed), accounts[first].method);
    else if (pw_pages_is_mthp(policy))
        snprintf(why, sizeof why, " by %s", accounts[first].method);
    else if (policy->kind == PW_PAGES_THP)
        snprintf(why, sizeof why, ", and collapsing them does not help (%s)",
                 collapse_error == 0 ? "the kernel splits them again" : strerror(collapse_error));
    pw_pages_policy_name(policy, name);
    pw_pages_fail(failure, PW_PAGES_UNAVAILABLE,
                  "policy %s: %lld of %lld KiB are not on huge pages of %lld KiB (array %s: %lld of %lld KiB)%s", name,
                  kib(bytes - huge), kib(bytes), kib(page_size), arrays[first].name,
                  kib(arrays[first].bytes - accounts[first].huge_bytes), kib(arrays[first].bytes), why);
    if (pw_pages_is_mthp(policy) && observed > page_size)
        pw_pages_remedy(failure,
                        "the machine's settings changed during the run: run again, or as root: echo never > "
                        "/sys/kernel/mm/transparent_hugepage/hugepages-%lldkB/enabled",
                        kib(observed));
    else if (policy->kind == PW_PAGES_THP && collapse_error == EBUSY) /* madvise(2) */
        pw_pages_remedy(failure, "the memory limit of a control group may leave no room for huge pages: allow the job more "
                                 "memory, or choose a smaller working set");
    else if (policy->kind == PW_PAGES_THP)
        pw_pages_remedy(failure, "memory is short or fragmented: free some, choose a smaller working set, or as root: "
                                 "sysctl -w vm.drop_caches=3 vm.compact_memory=1, and run again");
    else
        pw_pages_remedy(failure, "write every page of the arrays before this check, and keep them mapped");
    return failure->code;
}

int32_t pw_pages_verify(const struct pw_pages_array *arrays, int32_t count, const struct pw_pages_policy *policy,
                         struct pw_pages_failure *failure)
{
    struct pw_pages_account *accounts = calloc((size_t)count + 1, sizeof *accounts);
    if (accounts == NULL) return pw_pages_fail(failure, PW_PAGES_SYSTEM, "cannot allocate memory to verify %d arrays", count);
    int32_t code = pw_pages_account(arrays, count, policy, accounts, failure);
    if (code == PW_PAGES_OK && pw_pages_nature(policy) == PW_PAGES_NONE) {
        code = verify_none(arrays, count, accounts, failure);
    } else if (code == PW_PAGES_OK) {
        bool incomplete = false;
        for (int32_t i = 0; i < count; i++) incomplete = incomplete || is_short(&arrays[i], &accounts[i], 1.0);
        int error = 0;
        if (incomplete && policy->kind == PW_PAGES_THP && !pw_pages_is_mthp(policy)) {
            error = collapse(arrays, count, accounts, pw_pages_size(policy));
            code = pw_pages_account(arrays, count, policy, accounts, failure);
        }
        if (code == PW_PAGES_OK) code = verify_huge(arrays, count, policy, accounts, error, failure);
    }
    free(accounts);
    return code;
}
