/* Tests of pages.h, one per call: test_pages CASE [ARGUMENT]... Exit 0: passed, 1: failed, 77: cannot be tested here. */
#define _GNU_SOURCE
#include "checks.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

enum { SIZE_64K = 65536 };
static const policy_t thp_64k = {PW_PAGES_THP, SIZE_64K};
static const char no_flags[] = "the flags of pages cannot be read (/proc/kpageflags, root)";

const char *case_name = "", *argument[3] = {"", "", ""};

static int thp_disabled(void)
{
    return prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0);
}

static void base_pages(void)
{
    array_t arrays[3];
    check(available(none), "none is refused");
    check(thp_disabled() == 1, "transparent huge pages are not refused to the process");
    three_arrays(arrays, none, thp_size() > 0 ? thp_size() : base_page(), DYNAMIC);
    check_verified(arrays, 3, none);
    check_pages(arrays, 3, none, base_page(), 0.0, "smaps");
}

/* Of memory without a policy. */
static int64_t compound_of_plain(void)
{
    char *memory = mmap(NULL, 8 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return -1;
    memset(memory, 1, 8 * MIB);
    return compound_bytes_of(memory, 8 * MIB);
}

/* On a machine that gives huge pages of several sizes without advice, policy none gets none of them. */
static void none_without_mthp(void)
{
    const int64_t before = compound_of_plain();
    if (before < 0) {
        skip(no_flags);
        return;
    }
    check(before > 0, "without a policy this machine gives base pages: the test would be void");
    check(available(none), "none is refused");
    for (int32_t allocation = DYNAMIC; allocation <= STATIC; allocation++) {
        const array_t array = touched_as("a", none, 8 * MIB, 0, allocation);
        check_verified(&array, 1, none);
        check(compound_bytes_of(array.address, array.bytes) == 0, "bytes lie on huge pages");
    }
    check(compound_of_plain() == 0, "bytes of other memory lie on huge pages");
}

/* Huge pages, or only eligibility for them, fail policy none. */
static void none_rejected(void)
{
    if (!available(thp)) return;
    array_t array = touched(thp, 3 * MIB);
    check_rejected(&array, 1, none, "array a has 3072 KiB", "never");
    array = touched_as("b", none, 3 * MIB, 0, DYNAMIC);
    check_verified(&array, 1, none);
    advise(&array, array.bytes, true);
    check_rejected(&array, 1, none, "array b", "madvise");
}

static void huge_pages(void)
{
    array_t arrays[3];
    if (!available(thp)) return;
    three_arrays(arrays, thp, thp_size(), DYNAMIC);
    check_verified(arrays, 3, thp);
    check_pages(arrays, 3, thp, thp_size(), 1.0, "smaps");
}

/* The machine is one without transparent huge pages of this size (with_files); the command line gives what message and
   remedy must contain, and the policy if it is another one. */
static void thp_unavailable(void)
{
    const policy_t policy = argument[2][0] == '\0' ? thp : policy_called(argument[2]);
    check_failed(pw_pages_begin(&policy, &failure), PW_PAGES_UNAVAILABLE, argument[0], argument[1]);
}

static void thp_refused_by_parent(void)
{
    check(thp_disabled() == 1, "the refusal did not survive exec");
    const int32_t code = pw_pages_begin(&thp, &failure);
    if (code == PW_PAGES_UNAVAILABLE && strstr(failure.message, "never") != NULL)
        skip(failure.message);
    else
        check_failed(code, PW_PAGES_UNAVAILABLE, "PR_SET_THP_DISABLE", "shell or batch job");
}

/* The parent disabled only memory without advice: the arrays have it. */
static void thp_unless_advised(void)
{
    check(thp_disabled() == 3, "the refusal did not survive exec");
    huge_pages();
    check(strstr(skip_reason, "PR_SET_THP_DISABLE") == NULL, "%s", skip_reason);
}

/* The machine supports them (with_files). */
static void thp_available(void)
{
    if (!available(thp)) check(thp_disabled() == 1, "thp is refused");
}

/* Touched as base pages, then collapsed by the page verification. */
static void thp_collapsed(void)
{
    const int collapse = 25;                    /* MADV_COLLAPSE */
    if (madvise(NULL, 0, collapse) != 0) { /* no memory: only an unknown advice is refused (madvise(2)) */
        skip("this kernel cannot collapse memory (needs Linux 6.1)");
        return;
    }
    if (!available(thp)) return;
    array_t array = requested("a", thp, 8 * MIB, ODD_OFFSET, DYNAMIC);
    struct pw_pages_account account;
    check_ok(pw_pages_allocate(&array, &failure));
    advise(&array, array.bytes, false);
    touch(&array);
    check_ok(pw_pages_account(&array, 1, &thp, &account, &failure));
    check(account.page_size_observed == base_page(), "base pages were not observed");
    advise(&array, array.bytes, true); /* only now: khugepaged collapses advised memory at any time */
    check_verified(&array, 1, thp);
    check_pages(&array, 1, thp, thp_size(), 1.0, "smaps");
}

/* The error reports how much of which array cannot be collapsed. */
static void thp_short(void)
{
    char message[PW_PAGES_TEXT];
    if (!available(thp)) return;
    const int64_t size = thp_size();
    const long long kib = size / KIB, all = 6 * kib;
    array_t arrays[2] = {touched(thp, 2 * size), requested("b", thp, 4 * size, 0, DYNAMIC)};
    check_ok(pw_pages_allocate(&arrays[1], &failure));
    advise(&arrays[1], size, false);
    touch(&arrays[1]);
    snprintf(message, sizeof message, "%lld of %lld KiB are not on huge pages of %lld KiB (array b: ", kib, all, kib);
    check_rejected(arrays, 2, thp, message, "compact_memory");
}

/* After page verification one base page is dropped, unmapped or protected: the huge page around it is split, and the observed
   pages lose exactly that huge page. */
static void thp_split(void)
{
    if (!available(thp)) return;
    const int64_t size = thp_size();
    const size_t bytes = (size_t)base_page();
    const array_t array = touched(thp, 8 * size);
    check_verified(&array, 1, thp);
    check_pages(&array, 1, thp, size, 1.0, "smaps");
    char *const page = page_at(array.address + 3 * size + size / 2);
    if (strcmp(case_name, "thp_dropped") == 0) check(madvise(page, bytes, MADV_DONTNEED) == 0, "refused");
    if (strcmp(case_name, "thp_unmapped") == 0) check(munmap(page, bytes) == 0, "refused");
    if (strcmp(case_name, "thp_protected") == 0) check(mprotect(page, bytes, PROT_READ) == 0, "refused");
    check_pages(&array, 1, thp, size, 7.0 / 8.0, "smaps");
}

/* Pages of 64 KiB, whatever larger ones the machine would give (with_settings). */
static void thp_64k_given(void)
{
    array_t arrays[3];
    if (!available(thp_64k)) return;
    three_arrays(arrays, thp_64k, thp_size(), strcmp(case_name, "thp_64k_static") == 0 ? STATIC : DYNAMIC);
    check_verified(arrays, 3, thp_64k);
    check_pages(arrays, 3, thp_64k, SIZE_64K, 1.0, strcmp(case_name, "thp_64k_by_statistics") == 0 ? "thp_stats" : "kpageflags");
    for (int i = 0; i < 3; i++) {
        const int64_t compound = compound_bytes_of(arrays[i].address, arrays[i].bytes);
        check(compound < 0 || compound >= arrays[i].bytes, "%lld B are on large pages", (long long)compound);
    }
}

/* A base page is released: its large page no longer counts. The statistics do not show that the two losses are the same page. */
static void thp_64k_dropped(void)
{
    struct pw_pages_account account;
    if (!available(thp_64k)) return;
    const array_t array = touched(thp_64k, 8L * SIZE_64K);
    check_verified(&array, 1, thp_64k);
    char *const page = page_at(array.address + 3L * SIZE_64K + 2 * base_page());
    check(madvise(page, (size_t)base_page(), MADV_DONTNEED) == 0, "the page cannot be dropped");
    check_ok(pw_pages_account(&array, 1, &thp_64k, &account, &failure));
    const int64_t least = 7L * SIZE_64K - (strcmp(account.method, "kpageflags") == 0 ? 0 : base_page());
    check(account.huge_bytes == least, "%lld B by %s", (long long)account.huge_bytes, account.method);
    check_rejected(&array, 1, thp_64k, " of 512 KiB are not on huge pages of 64 KiB", "compact_memory");
}

/* Another machine (with_files): its switch shows that they are enabled, but they are not; or the flags of page frames are
   unreadable, and the kernel does not count. */
static void thp_64k_not_served(void)
{
    char message[PW_PAGES_TEXT];
    if (!available(thp_64k)) return;
    const array_t array = touched(thp_64k, 4 * MIB);
    snprintf(message, sizeof message, "policy thp:64k: 4096 of 4096 KiB are not on huge pages of 64 KiB (array a: 4096 of 4096 KiB), "
             "most of it on pages of %lld KiB", (long long)base_page() / KIB);
    check_rejected(&array, 1, thp_64k, message, "fragmented");
}

static void thp_64k_unverified(void)
{
    if (!available(thp_64k)) return;
    const array_t array = touched(thp_64k, 4 * MIB);
    check_rejected(&array, 1, thp_64k, "64 KiB", "root");
}

/* Pages of PMD size are not pages of 64 KiB. */
static void thp_64k_rejected(void)
{
    char message[PW_PAGES_TEXT], remedy[PW_PAGES_TEXT];
    if (!available(thp)) return;
    const int64_t kib = thp_size() / KIB;
    const array_t array = touched(thp, 2 * thp_size());
    if (compound_bytes_of(array.address, array.bytes) < 0) {
        skip(no_flags);
        return;
    }
    snprintf(message, sizeof message, "most of it on pages of %lld KiB", (long long)kib);
    snprintf(remedy, sizeof remedy, "echo never > " THP_FOLDER "hugepages-%lldkB/enabled", (long long)kib);
    check_rejected(&array, 1, thp_64k, message, remedy);
}

static int64_t pool_number(int64_t page_size, const char *name)
{
    return number_in("/sys/kernel/mm/hugepages/hugepages-%lldkB/%s", (long long)page_size / KIB, name);
}

/* Under with_settings, which fills the hugetlb pool, or reserves a page of 1 GiB if the machine has the memory. */
static void pool_filled(void)
{
    const policy_t policy = strcmp(case_name, "pool_1g") == 0 ? (policy_t){PW_PAGES_HUGETLBFS, 1024L * MIB} : pool;
    const int64_t bytes[3] = {8 * MIB, 6 * MIB, MIB}, size = pw_pages_size(&policy);
    const int count = policy.page_size > 0 ? 1 : 3;
    array_t arrays[3];
    check(available(policy), "the pool is refused");
    const int64_t before = pool_number(size, "free_hugepages");
    check_ok(pw_pages_require(&policy, DYNAMIC, bytes, count, &failure));
    if (count == 3)
        three_arrays(arrays, policy, size, DYNAMIC);
    else
        arrays[0] = touched_as("a", policy, 5 * MIB, ODD_OFFSET, DYNAMIC);
    check_verified(arrays, count, policy);
    check_pages(arrays, count, policy, size, 1.0, "smaps");
    check(pool_number(size, "free_hugepages") < before, "the pages do not come from the pool");
    release(arrays, count);
    check(pool_number(size, "free_hugepages") == before, "the pages were not returned to the pool");
}

/* Whatever the pool holds: request three pages more, at once or with a second array. The command line names the policy if it is
   not that of the default pool. */
static void pool_short(void)
{
    enum { more = 3 };
    const policy_t policy = argument[0][0] == '\0' ? pool : policy_called(argument[0]);
    char message[128], remedy[128];
    if (!available(policy)) return;
    const int64_t size = pw_pages_size(&policy);
    if (pool_number(size, "nr_overcommit_hugepages") > 0) {
        skip("the hugetlb pool can grow by itself (nr_overcommit_hugepages)");
        return;
    }
    const long long total = pool_number(size, "nr_hugepages") + more, kib = size / KIB;
    const int64_t left = pool_number(size, "free_hugepages") - pool_number(size, "resv_hugepages");
    snprintf(remedy, sizeof remedy, "sysctl -w vm.nr_hugepages=%lld;", total);
    if (policy.page_size > 0)
        snprintf(remedy, sizeof remedy, "echo %lld > /sys/kernel/mm/hugepages/hugepages-%lldkB/", total, kib);
    const int64_t bytes[2] = {size * left, size * more - 1};
    check_failed(pw_pages_require(&policy, DYNAMIC, bytes, 2, &failure), PW_PAGES_UNAVAILABLE, "3 of them are missing", remedy);
    snprintf(message, sizeof message, "array a needs %lld huge pages of %lld KiB, and 3 of them are missing", (long long)left + more,
             kib);
    check_refused(policy, size * (left + more), 0, DYNAMIC, PW_PAGES_UNAVAILABLE, message, remedy);
    check_refused(policy, 1, size * (left + more - 1), DYNAMIC, PW_PAGES_UNAVAILABLE, "3 of them are missing", remedy);
    if (left == 0) return;
    touched_as("held", policy, size * left, 0, DYNAMIC);
    snprintf(message, sizeof message, "array a needs 3 huge pages of %lld KiB, and ", kib);
    check_refused(policy, size * more, 0, DYNAMIC, PW_PAGES_UNAVAILABLE, message, remedy);
}

/* The machine does not support hugetlbfs (with_files). */
static void pool_unsupported(void)
{
    static const char message[] = "policy hugetlbfs", remedy[] = "CONFIG_HUGETLBFS";
    static const int64_t bytes = 1;
    check_failed(pw_pages_begin(&pool, &failure), PW_PAGES_UNAVAILABLE, message, remedy);
    check_failed(pw_pages_require(&pool, DYNAMIC, &bytes, 1, &failure), PW_PAGES_UNAVAILABLE, message, remedy);
    check_refused(pool, bytes, 0, DYNAMIC, PW_PAGES_UNAVAILABLE, message, remedy);
}

/* Control groups leave two pages of 2 MiB (with_files), and the pool is empty: the limit is the first cause. */
static void pool_limited(void)
{
    const policy_t small = {PW_PAGES_HUGETLBFS, 2 * MIB};
    static const int64_t three = 5 * MIB, two = 4 * MIB;
    check_failed(pw_pages_require(&small, DYNAMIC, &three, 1, &failure), PW_PAGES_UNAVAILABLE, "allow 2 more", "hugetlb.*.max");
    check_refused(small, three, 0, DYNAMIC, PW_PAGES_UNAVAILABLE, "allow 2 more", "hugetlb.*.max");
    check_failed(pw_pages_require(&small, DYNAMIC, &two, 1, &failure), PW_PAGES_UNAVAILABLE, "2 of them are missing", "nr_hugepages");
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        void (*test)(void);
    } cases[] = {
        {"policy_names", policy_names}, {"senseless_sizes", senseless_sizes}, {"untouched", untouched}, {"free", freed},
        {"static", static_arrays}, {"static_too_large", static_too_large}, {"static_pool", static_pool}, {"none", base_pages},
        {"none_without_mthp", none_without_mthp}, {"none_rejected", none_rejected}, {"thp", huge_pages},
        {"thp_unavailable", thp_unavailable}, {"thp_refused_by_parent", thp_refused_by_parent},
        {"thp_unless_advised", thp_unless_advised}, {"thp_available", thp_available}, {"thp_collapsed", thp_collapsed},
        {"thp_short", thp_short}, {"thp_dropped", thp_split}, {"thp_unmapped", thp_split}, {"thp_protected", thp_split},
        {"thp_64k", thp_64k_given}, {"thp_64k_static", thp_64k_given}, {"thp_64k_by_statistics", thp_64k_given},
        {"thp_64k_dropped", thp_64k_dropped}, {"thp_64k_rejected", thp_64k_rejected},
        {"thp_64k_not_served", thp_64k_not_served}, {"thp_64k_unverified", thp_64k_unverified}, {"pool", pool_filled},
        {"pool_1g", pool_filled}, {"pool_short", pool_short}, {"pool_unsupported", pool_unsupported}, {"pool_limited", pool_limited}};
    bool known = false;
    if (count > 1) case_name = words[1];
    for (int i = 2; i < count && i < 5; i++) argument[i - 2] = words[i];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, case_name) != 0) continue;
        known = true;
        cases[i].test();
    }
    check(known, "no such test: '%s'", case_name);
    if (failures > 0) return 1;
    if (skip_reason[0] == '\0') return 0;
    fprintf(stderr, "skipped: %s\n", skip_reason);
    return 77;
}
