/* Mappings of each policy. Nothing is touched here: the first touch places the pages. */
#define _GNU_SOURCE
#include "machine.h"
#include "system.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26 /* linux/mman.h: the logarithm of the page size is stored above this bit of the flags */
#endif

static int32_t refused(struct pw_pages_failure *failure, const struct pw_pages_array *array, const char *call)
{
    pw_pages_fail(failure, PW_PAGES_SYSTEM, "array %s: the system refused %lld KiB of memory (%s: %s)", array->name,
                  (long long)(array->bytes + 1023) / 1024, call, strerror(errno));
    return pw_pages_remedy(failure, "choose a smaller working set, or raise the limits (ulimit -v, vm.overcommit_memory, "
                                    "vm.max_map_count, the job's memory)");
}

/* The command that reserves this many pages in the hugetlb pool. */
static void command_of(const struct pw_machine_pool *pool, int64_t pages, char *command, size_t length)
{
    if (pool->page_size == pw_machine_pool_page_size())
        snprintf(command, length, "sysctl -w vm.nr_hugepages=%lld", (long long)pages);
    else
        snprintf(command, length, "echo %lld > %s", (long long)pages, pool->path);
}

/* The pool has fewer than `needed` pages available, or the kernel refuses them. */
static int32_t pool_short(struct pw_pages_failure *failure, const struct pw_machine_pool *pool, const char *owner,
                          int64_t needed)
{
    long long missing = needed - pool->available;
    long long persistent = pool->total - pool->surplus;
    long long kib = pool->page_size / 1024;
    if (needed > pool->allowed) {
        pw_pages_fail(failure, PW_PAGES_UNAVAILABLE,
                      "policy hugetlbfs: %s %lld huge pages of %lld KiB, and the control groups of this process allow %lld "
                      "more",
                      owner, (long long)needed, kib, (long long)pool->allowed);
        pw_pages_remedy(failure, "ask for more of them: the batch system or the container has set this limit "
                                 "(hugetlb.*.max)");
    } else if (missing > 0) {
        pw_pages_fail(failure, PW_PAGES_UNAVAILABLE,
                      "policy hugetlbfs: %s %lld huge pages of %lld KiB, and %lld of them are missing: %lld of "
                      "%lld pages in the hugetlb pool are available",
                      owner, (long long)needed, kib, missing, (long long)pool->available, (long long)pool->total);
        char command[192];
        command_of(pool, persistent + missing, command, sizeof command);
        pw_pages_remedy(failure, "as root: %s; or pagewise kernels --prepare-pages, which releases them afterwards",
                        command);
    } else {
        pw_pages_fail(failure, PW_PAGES_UNAVAILABLE,
                      "policy hugetlbfs: %s %lld huge pages of %lld KiB, but the kernel refuses them although %lld of "
                      "%lld pages in the hugetlb pool are available",
                      owner, (long long)needed, kib, (long long)pool->available, (long long)pool->total);
        pw_pages_remedy(failure, "check the limits of this process: its cpuset or NUMA policy (numactl --show; the pools per "
                                 "node are in /sys/devices/system/node/node*/hugepages), its hugetlb cgroup, ulimit -v");
    }
    return failure->code;
}

static int32_t require_pool(int64_t page_size, const int64_t *bytes, int32_t count, struct pw_pages_failure *failure)
{
    struct pw_machine_pool pool;
    pw_machine_pool(page_size, &pool);
    int64_t needed = 0;
    for (int32_t i = 0; i < count; i++) needed += pw_round_up(bytes[i], page_size) / page_size;
    if (needed <= pool.allowed && needed <= pool.available + pool.overcommit - pool.surplus) return PW_PAGES_OK;
    return pool_short(failure, &pool, count == 1 ? "the array needs" : "the arrays need", needed);
}

/* Unsigned: the logarithm of 16 GiB reaches the sign bit. */
int32_t pw_pages_pool_flags(int64_t page_size)
{
    return MAP_HUGETLB | (int32_t)((uint32_t)__builtin_ctzll((unsigned long long)page_size) << MAP_HUGE_SHIFT);
}

/* From the hugetlb pool. Without MAP_NORESERVE, so that a short pool is an error here instead of SIGBUS at the first touch;
   without MAP_FIXED, which destroys the old mapping before it fails. The kernel never merges such mappings. */
static int32_t map_pool(struct pw_pages_array *array, struct pw_pages_failure *failure)
{
    int64_t size = pw_pages_size(&array->policy);
    if (size == 0) return pw_pages_begin(&array->policy, failure);
    int64_t length = pw_round_up(array->offset + array->bytes, size);
    char *start = mmap(NULL, (size_t)length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | pw_pages_pool_flags(size), -1, 0);
    if (start == MAP_FAILED) {
        char owner[PW_PAGES_NAME + 16];
        snprintf(owner, sizeof owner, "array %s needs", array->name);
        struct pw_machine_pool pool;
        pw_machine_pool(size, &pool);
        return pool_short(failure, &pool, owner, length / size);
    }
    array->mapping = start;
    array->mapping_bytes = length;
    array->address = start + array->offset;
    return PW_PAGES_OK;
}

/* From libmpg, through malloc: it chooses the pages, and page verification shows which they are. Whole aligned pages, so
   that no two arrays share a page. */
static int32_t map_fjmpg(struct pw_pages_array *array, struct pw_pages_failure *failure)
{
    const int64_t own = 2 << 20, size = pw_pages_size(&array->policy); /* libmpg's own pages */
    const int64_t alignment = size > own ? size : own, length = pw_round_up(array->offset + array->bytes, alignment);
    void *start = NULL;
    errno = posix_memalign(&start, (size_t)alignment, (size_t)length);
    if (errno != 0) return refused(failure, array, "posix_memalign");
    array->mapping = start;
    array->mapping_bytes = length;
    array->address = array->mapping + array->offset;
    return PW_PAGES_OK;
}

/* The static memory of static_memory.c, absent in programs that are linked without it. Arrays are cut from it one after the
   other; it is free again when none is left. */
extern char pw_static_memory[] __attribute__((weak));
extern const int64_t pw_static_memory_bytes __attribute__((weak));
static int64_t static_used;
static int32_t static_arrays;

int64_t pw_pages_static_bytes(void)
{
    return &pw_static_memory_bytes != NULL ? pw_static_memory_bytes : 0;
}

static char *static_start(void)
{
    return pw_static_memory + (-(uintptr_t)pw_static_memory % (uintptr_t)pw_system_base_page_size());
}

/* One array with its guards. */
struct layout {
    int64_t alignment, length, whole;
};

/* A whole number of aligned huge pages between two inaccessible guards. The guards keep the kernel from merging neighbours,
   so that each entry of smaps belongs to one array. All policies get the same layout: only the pages differ. In static
   memory, where space is short, huge pages beyond 2 MiB count only for the policy that requests them. */
static struct layout layout_of(const struct pw_pages_policy *policy, int32_t allocation, int64_t bytes)
{
    const int64_t small = 2 << 20;
    int64_t base = pw_system_base_page_size();
    int64_t huge = pw_machine_thp_size();
    struct layout layout = {.alignment = huge > 0 ? huge : base};
    if (allocation == PW_PAGES_STATIC && layout.alignment > small) {
        int64_t wanted = pw_pages_size(policy);
        layout.alignment = wanted > small ? wanted : small;
    }
    layout.length = pw_round_up(bytes, layout.alignment);
    layout.whole = layout.length + layout.alignment + base;
    return layout;
}

static int32_t static_short(struct pw_pages_failure *failure, int64_t needed)
{
    pw_pages_fail(failure, PW_PAGES_USAGE, "the arrays need %lld MiB of static memory, but only %lld are available",
                  (long long)(needed >> 20) + 1, (long long)pw_pages_static_bytes() >> 20);
    return pw_pages_remedy(failure, "choose a smaller working set, or dynamic arrays (--allocation dynamic)");
}

/* A hugetlb pool backs mappings that are made for it, but static memory is mapped when the program starts. */
static int32_t static_pool(const struct pw_pages_policy *policy, struct pw_pages_failure *failure)
{
    if (pw_pages_by_libmpg(policy)) {
        pw_pages_fail(failure, PW_PAGES_UNAVAILABLE, "policy fjmpg: the pages of static memory under libmpg cannot be verified "
                                                     "per array");
        return pw_pages_remedy(failure, "choose dynamic arrays (--allocation dynamic)");
    }
    pw_pages_fail(failure, PW_PAGES_UNAVAILABLE, "policy hugetlbfs: static arrays cannot use pages of the hugetlb pool: only "
                                                 "libhugetlbfs can remap them, in a program that is linked for it");
    return pw_pages_remedy(failure, "choose dynamic arrays (--allocation dynamic), or transparent huge pages (--pages thp)");
}

static int32_t require_static(const struct pw_pages_policy *policy, const int64_t *bytes, int32_t count,
                              struct pw_pages_failure *failure)
{
    if (policy->kind == PW_PAGES_HUGETLBFS || pw_pages_by_libmpg(policy)) return static_pool(policy, failure);
    int64_t needed = static_used + (static_start() - pw_static_memory);
    for (int32_t i = 0; i < count; i++) needed += layout_of(policy, PW_PAGES_STATIC, bytes[i]).whole;
    return needed <= pw_pages_static_bytes() ? PW_PAGES_OK : static_short(failure, needed);
}

int32_t pw_pages_require(const struct pw_pages_policy *policy, int32_t allocation, const int64_t *bytes, int32_t count,
                         struct pw_pages_failure *failure)
{
    if (allocation == PW_PAGES_STATIC) return require_static(policy, bytes, count, failure);
    if (policy->kind != PW_PAGES_HUGETLBFS) return PW_PAGES_OK;
    int64_t page_size = pw_pages_size(policy);
    return page_size == 0 ? pw_pages_begin(policy, failure) : require_pool(page_size, bytes, count, failure);
}

/* Inaccessible address space for an array; NULL: `failure` describes why. */
static char *reserve(const struct pw_pages_array *array, int64_t whole, struct pw_pages_failure *failure)
{
    if (array->allocation == PW_PAGES_DYNAMIC) {
        char *mapping = mmap(NULL, (size_t)whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapping != MAP_FAILED) return mapping;
        refused(failure, array, "mmap");
        return NULL;
    }
    int64_t bytes = array->offset + array->bytes;
    if (require_static(&array->policy, &bytes, 1, failure) != PW_PAGES_OK) return NULL;
    char *mapping = static_start() + static_used;
    if (mprotect(mapping, (size_t)whole, PROT_NONE) != 0) {
        refused(failure, array, "mprotect");
        return NULL;
    }
    static_used += whole;
    static_arrays++;
    return mapping;
}

/* The reverse. Returns 0, or -1 with errno. */
static int release(int32_t allocation, char *mapping, int64_t whole)
{
    if (allocation == PW_PAGES_DYNAMIC) return munmap(mapping, (size_t)whole);
    if (madvise(mapping, (size_t)whole, MADV_DONTNEED) != 0 || madvise(mapping, (size_t)whole, MADV_DODUMP) != 0 ||
        mprotect(mapping, (size_t)whole, PROT_NONE) != 0)
        return -1;
    if (--static_arrays == 0) static_used = 0;
    return 0;
}

/* At a first touch the kernel uses the largest size that is enabled and fits into the mapping, whatever is requested. So
   the memory is split into mappings that cannot hold a larger page: each is as long as the next larger page, and begins one
   requested page after a boundary of these. Adjacent mappings with equal attributes are merged again, so every other one is
   excluded from core dumps, which has no other effect. Returns 0, or -1 with errno. */
static int split(char *start, int64_t length, int64_t page_size)
{
    int64_t larger = pw_machine_thp_next(page_size);
    for (int64_t at = page_size; larger > 0 && at < length; at += 2 * larger) {
        int64_t left = length - at;
        if (madvise(start + at, (size_t)(left < larger ? left : larger), MADV_DONTDUMP) != 0) return -1;
    }
    return 0;
}

/* On base or transparent huge pages. */
static int32_t map_anonymous(struct pw_pages_array *array, struct pw_pages_failure *failure)
{
    struct layout layout = layout_of(&array->policy, array->allocation, array->offset + array->bytes);
    char *mapping = reserve(array, layout.whole, failure);
    if (mapping == NULL) return failure->code;
    char *start = mapping + pw_system_base_page_size();
    start += -(uintptr_t)start % (uintptr_t)layout.alignment;

    /* Advised before it becomes accessible, so that no other pages ever serve it. A kernel without
       transparent huge pages supports neither advice (EINVAL), and policy none does not need it then. */
    int advice = array->policy.kind == PW_PAGES_THP ? MADV_HUGEPAGE : MADV_NOHUGEPAGE;
    bool needless = array->policy.kind == PW_PAGES_NONE && pw_machine_thp_size() == 0;
    const char *call = NULL;
    if ((!needless && madvise(start, (size_t)layout.length, advice) != 0) ||
        (pw_pages_is_mthp(&array->policy) && split(start, layout.length, pw_pages_size(&array->policy)) != 0))
        call = "madvise";
    else if (mprotect(start, (size_t)layout.length, PROT_READ | PROT_WRITE) != 0)
        call = "mprotect";
    if (call != NULL) {
        refused(failure, array, call);
        release(array->allocation, mapping, layout.whole);
        return failure->code;
    }
    if (array->policy.kind == PW_PAGES_THP) pw_machine_thp_counts(pw_pages_size(&array->policy), &array->before);
    array->mapping = mapping;
    array->mapping_bytes = layout.whole;
    array->address = start + array->offset;
    return PW_PAGES_OK;
}

int32_t pw_pages_allocate(struct pw_pages_array *array, struct pw_pages_failure *failure)
{
    /* Half the address space, so that sums of sizes stay within 64 bits. */
    const int64_t most = (int64_t)1 << 62;
    if (array->bytes <= 0 || array->offset < 0 || array->bytes > most || array->offset > most - array->bytes) {
        pw_pages_fail(failure, PW_PAGES_USAGE, "array %s: %lld bytes at offset %lld cannot be allocated", array->name,
                      (long long)array->bytes, (long long)array->offset);
        return pw_pages_remedy(failure, "request at least one byte at an offset of at least zero, and less than 4 EiB in total");
    }
    if (pw_pages_by_libmpg(&array->policy) && array->allocation == PW_PAGES_DYNAMIC) return map_fjmpg(array, failure);
    if (array->policy.kind != PW_PAGES_HUGETLBFS) return map_anonymous(array, failure);
    return array->allocation == PW_PAGES_STATIC ? static_pool(&array->policy, failure) : map_pool(array, failure);
}

int32_t pw_pages_free(struct pw_pages_array *array, struct pw_pages_failure *failure)
{
    if (array->mapping != NULL && pw_pages_by_libmpg(&array->policy) && array->allocation == PW_PAGES_DYNAMIC) {
        free(array->mapping);
        array->mapping = NULL;
    }
    if (array->mapping != NULL && release(array->allocation, array->mapping, array->mapping_bytes) != 0) {
        pw_pages_fail(failure, PW_PAGES_SYSTEM, "array %s: its memory cannot be released: %s", array->name,
                      strerror(errno));
        return pw_pages_remedy(failure, "raise vm.max_map_count");
    }
    array->mapping = NULL;
    array->address = NULL;
    array->mapping_bytes = array->bytes = array->offset = 0;
    return PW_PAGES_OK;
}
