/* Mappings of each policy. Nothing is touched here: the pages are placed by who writes them first. */
#define _GNU_SOURCE
#include "machine.h"
#include "system.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26 /* linux/mman.h: the page size's logarithm stands above this bit of the flags */
#endif

static int32_t refused(struct pw_pages_failure *failure, const struct pw_pages_array *array, const char *call)
{
    pw_pages_fail(failure, PW_PAGES_SYSTEM, "array %s: the system refused %lld KiB of memory (%s: %s)", array->name,
                  (long long)(array->bytes + 1023) / 1024, call, strerror(errno));
    pw_pages_remedy(failure, "take a smaller working set, or raise the limits (ulimit -v, vm.overcommit_memory, "
                             "vm.max_map_count, the job's memory)");
    return failure->code;
}

/* `needed` pages are not in the pool, or the kernel would not give them. */
static int32_t pool_short(struct pw_pages_failure *failure, const char *who, int64_t needed)
{
    struct pw_machine_pool pool;
    pw_machine_pool(&pool);
    long long missing = needed - pool.available;
    long long persistent = pool.total - pool.surplus;
    long long kib = pool.page_size / 1024;
    if (missing > 0) {
        pw_pages_fail(failure, PW_PAGES_UNAVAILABLE,
                      "policy hugetlbfs: %s %lld huge pages of %lld KiB, and %lld of them are missing: of the pool's "
                      "%lld pages %lld are available",
                      who, (long long)needed, kib, missing, (long long)pool.total, (long long)pool.available);
        pw_pages_remedy(failure,
                        "as root: sysctl -w vm.nr_hugepages=%lld; or pagewise compare --reserve-hugepages, which gives "
                        "them back afterwards",
                        persistent + missing);
    } else {
        pw_pages_fail(failure, PW_PAGES_UNAVAILABLE,
                      "policy hugetlbfs: %s %lld huge pages of %lld KiB, and the kernel refuses them although %lld of "
                      "the pool's %lld pages are available",
                      who, (long long)needed, kib, (long long)pool.available, (long long)pool.total);
        pw_pages_remedy(failure, "look at what bounds this process: its cpuset or NUMA policy (numactl --show; pools per "
                                 "node are in /sys/devices/system/node/node*/hugepages), its hugetlb cgroup, ulimit -v");
    }
    return failure->code;
}

int32_t pw_pages_require(int32_t policy, const int64_t *bytes, int32_t count, struct pw_pages_failure *failure)
{
    if (policy != PW_PAGES_HUGETLBFS) return PW_PAGES_OK;
    struct pw_machine_pool pool;
    pw_machine_pool(&pool);
    if (pool.page_size == 0) return pw_pages_begin(policy, failure);
    int64_t needed = 0;
    for (int32_t i = 0; i < count; i++) needed += pw_round_up(bytes[i], pool.page_size) / pool.page_size;
    if (needed <= pool.available + pool.overcommit - pool.surplus) return PW_PAGES_OK;
    return pool_short(failure, count == 1 ? "the array needs" : "the arrays need", needed);
}

/* From the pool. Without MAP_NORESERVE, so that a short pool is told here and not by SIGBUS at the touch; without
   MAP_FIXED, which would destroy an old mapping before it fails. Such mappings are never merged by the kernel. */
static int32_t map_pool(struct pw_pages_array *array, struct pw_pages_failure *failure)
{
    int64_t size = pw_machine_pool_page_size();
    if (size == 0) return pw_pages_begin(array->policy, failure);
    int64_t length = pw_round_up(array->offset + array->bytes, size);
    int size_flag = __builtin_ctzll((unsigned long long)size) << MAP_HUGE_SHIFT;
    char *start = mmap(NULL, (size_t)length, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | size_flag, -1, 0);
    if (start == MAP_FAILED) {
        char who[PW_PAGES_NAME + 16];
        snprintf(who, sizeof who, "array %s needs", array->name);
        return pool_short(failure, who, length / size);
    }
    array->mapping = start;
    array->mapping_bytes = length;
    array->address = start + array->offset;
    return PW_PAGES_OK;
}

/* Of base or transparent huge pages: a whole number of aligned huge pages between two inaccessible guards, which keep
   the kernel from merging neighbours, so that an entry of smaps is an array's alone. Both policies get the same
   layout: only the pages differ. */
static int32_t map_anonymous(struct pw_pages_array *array, struct pw_pages_failure *failure)
{
    int64_t base = pw_system_base_page_size();
    int64_t huge = pw_machine_thp_size();
    int64_t alignment = huge > 0 ? huge : base;
    int64_t length = pw_round_up(array->offset + array->bytes, alignment);
    int64_t whole = length + alignment + base;

    char *mapping = mmap(NULL, (size_t)whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) return refused(failure, array, "mmap");
    char *start = mapping + base;
    start += (alignment - (int64_t)((uintptr_t)start % (uintptr_t)alignment)) % alignment;

    /* Advised before it becomes accessible: never for a moment may it be served by other pages. A kernel without
       transparent huge pages knows neither advice (EINVAL), and policy none needs it then no more. */
    int advice = array->policy == PW_PAGES_THP ? MADV_HUGEPAGE : MADV_NOHUGEPAGE;
    bool needless = array->policy == PW_PAGES_NONE && huge == 0;
    const char *call = NULL;
    if (!needless && madvise(start, (size_t)length, advice) != 0)
        call = "madvise";
    else if (mprotect(start, (size_t)length, PROT_READ | PROT_WRITE) != 0)
        call = "mprotect";
    if (call != NULL) {
        refused(failure, array, call);
        munmap(mapping, (size_t)whole);
        return failure->code;
    }
    array->mapping = mapping;
    array->mapping_bytes = whole;
    array->address = start + array->offset;
    return PW_PAGES_OK;
}

int32_t pw_pages_allocate(struct pw_pages_array *array, struct pw_pages_failure *failure)
{
    /* Half the address space: sums of sizes stay within 64 bits. */
    const int64_t most = (int64_t)1 << 62;
    if (array->bytes <= 0 || array->offset < 0 || array->bytes > most || array->offset > most - array->bytes) {
        pw_pages_fail(failure, PW_PAGES_USAGE, "array %s: %lld bytes at offset %lld cannot be allocated", array->name,
                      (long long)array->bytes, (long long)array->offset);
        pw_pages_remedy(failure, "ask for at least one byte at an offset of at least zero, and less than 4 EiB in all");
        return failure->code;
    }
    return array->policy == PW_PAGES_HUGETLBFS ? map_pool(array, failure) : map_anonymous(array, failure);
}

int32_t pw_pages_free(struct pw_pages_array *array, struct pw_pages_failure *failure)
{
    if (array->mapping != NULL && munmap(array->mapping, (size_t)array->mapping_bytes) != 0) {
        pw_pages_fail(failure, PW_PAGES_SYSTEM, "array %s: its memory cannot be given back (munmap: %s)", array->name,
                      strerror(errno));
        pw_pages_remedy(failure, "raise vm.max_map_count");
        return failure->code;
    }
    array->mapping = NULL;
    array->address = NULL;
    array->mapping_bytes = array->bytes = array->offset = 0;
    return PW_PAGES_OK;
}
