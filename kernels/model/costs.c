/* What memory on base pages costs more than on huge pages, by how it is accessed: docs/explanation/origins.md.

       pagewise-costs BYTES

   The same lines are read in two blocks of BYTES bytes, one on base pages and one on transparent huge pages, in turns: nothing but the
   translation of addresses differs. Prints JSON: for each number of base pages that a program accesses between two accesses to
   a page (`pages`), nanoseconds of an access whose address the last one loaded (`dependent_ns`), of one whose address is known
   (`independent_ns`), and of one page of a stream (`adjacent_ns`); and of the first access to a page (`base_fault_ns`, `huge_fault_ns`).
   Exit codes: 2 for a wrong argument, 3 if huge pages are unavailable. */
#define _GNU_SOURCE
#include "mapping.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { line_bytes = 64, huge_bytes = 1 << PW_EXTENT_SHIFT, fault_bytes = 32 << 20 };
enum { least_pages = 64, spacing = 4, repetitions = 9, most_accesses = 1 << 15, least_accesses = 1 << 13, streamed_pages = 1 << 11 };
/* Twice `least_pages`: between two capacities. Two accesses to a page have at least this many others between them. */
enum { kinds = 2, patterns = 3 };

struct link {
    struct link *next;
};

static char *block[kinds]; /* on base pages, on huge pages */
static size_t page_bytes;
static uint64_t sum; /* of what was read; printed nowhere, but visible to the compiler */

static double now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[count / 2];
}

/* The line of a page: all sets of the caches are used. */
static size_t place(uint32_t page)
{
    return page * page_bytes + page * UINT64_C(67) % (page_bytes / line_bytes) * line_bytes;
}

/* xorshift64* (Vigna, An experimental exploration of Marsaglia's xorshift generators, 2016). */
static uint64_t random_number(void)
{
    static uint64_t state = 1;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * UINT64_C(2685821657736338717);
}

/* Nanoseconds of an access: along the links from *at on, which moves. */
static double dependent(struct link **at, size_t accesses)
{
    struct link *link = *at;
    const double begin = now_ns(CLOCK_MONOTONIC);
    for (size_t i = 0; i < accesses; i++) link = link->next;
    const double end = now_ns(CLOCK_MONOTONIC);
    *at = link;
    return (end - begin) / (double)accesses;
}

/* Of an access: to the pages in this order, from *first on, which moves. */
static double independent(const char *memory, const uint32_t *order, size_t pages, size_t *first, size_t accesses)
{
    const double begin = now_ns(CLOCK_MONOTONIC);
    size_t at = *first;
    for (size_t i = 0; i < accesses; i++) {
        sum += *(const volatile uint64_t *)(const void *)(memory + place(order[at]));
        at = at + 1 == pages ? 0 : at + 1;
    }
    *first = at;
    return (now_ns(CLOCK_MONOTONIC) - begin) / (double)accesses;
}

/* Of a page: all lines of pages in the order of their addresses. */
static double adjacent(const char *memory, size_t pages, size_t *first)
{
    const double begin = now_ns(CLOCK_MONOTONIC);
    for (size_t i = 0; i < streamed_pages; i++) {
        const char *page = memory + *first * page_bytes;
        for (size_t k = 0; k < page_bytes; k += line_bytes) sum += *(const volatile uint64_t *)(const void *)(page + k);
        *first = *first + 1 == pages ? 0 : *first + 1;
    }
    return (now_ns(CLOCK_MONOTONIC) - begin) / streamed_pages;
}

/* The difference between the blocks, base less huge, in each pattern, where `pages` pages are accessed in turn. */
static void measure(size_t pages, uint32_t *order, double extra[patterns])
{
    double difference[patterns][repetitions];
    struct link *at[kinds];
    size_t next[kinds] = {0}, streamed[kinds] = {0};
    const size_t accesses = pages < least_accesses ? least_accesses : pages < most_accesses ? pages : most_accesses;
    for (size_t i = 0; i < pages; i++) order[i] = (uint32_t)i;
    for (size_t i = pages - 1; i > 0; i--) {
        const size_t k = random_number() % (i + 1);
        const uint32_t kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
    for (int kind = 0; kind < kinds; kind++) {
        for (size_t i = 0; i < pages; i++)
            ((struct link *)(void *)(block[kind] + place(order[i])))->next =
                (struct link *)(void *)(block[kind] + place(order[(i + 1) % pages]));
        at[kind] = (struct link *)(void *)(block[kind] + place(order[0]));
    }
    for (int r = -1; r < repetitions; r++) { /* the first one fills caches */
        double ns[kinds][patterns];
        for (int i = 0; i < kinds; i++) {
            const int kind = r & 1 ? i : 1 - i;
            ns[kind][0] = dependent(&at[kind], accesses);
            sum += (uintptr_t)at[kind];
        }
        for (int i = 0; i < kinds; i++) ns[i][1] = independent(block[i], order, pages, &next[i], accesses);
        for (int i = 0; i < kinds; i++) ns[i][2] = adjacent(block[i], pages, &streamed[i]);
        for (int p = 0; p < patterns && r >= 0; p++) difference[p][r] = ns[0][p] - ns[1][p];
    }
    for (int p = 0; p < patterns; p++) extra[p] = median(difference[p], repetitions);
}

static void touch(char *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += page_bytes) ((volatile char *)memory)[i] = 1;
}

/* CPU time of the first access to each page of a kind, of which the block has `size` bytes each. */
static double fault_ns(int kind, size_t size)
{
    double ns[repetitions];
    for (int r = 0; r < repetitions; r++) {
        madvise(block[kind], fault_bytes, MADV_DONTNEED);
        const double begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
        touch(block[kind], fault_bytes);
        ns[r] = (now_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / ((double)fault_bytes / (double)size);
    }
    return median(ns, repetitions);
}

static bool are_all_huge(const char *memory, size_t bytes, bool huge)
{
    struct pw_observer observer;
    bool all = true;
    pw_observer_open(&observer);
    for (size_t i = 0; i < bytes; i += huge_bytes) all &= pw_observer_is_huge(&observer, (uintptr_t)memory + i) == huge;
    pw_observer_close(&observer);
    return all;
}

static bool map(size_t bytes)
{
    for (int kind = 0; kind < kinds; kind++) {
        char *mapped = mmap(NULL, bytes + huge_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED) return false;
        block[kind] = mapped + (huge_bytes - (uintptr_t)mapped % huge_bytes) % huge_bytes;
        madvise(block[kind], bytes, kind == 0 ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
        touch(block[kind], bytes);
        if (!are_all_huge(block[kind], bytes, kind == 1)) return false;
    }
    return true;
}

int main(int count, char **words)
{
    static const char *const names[patterns] = {"dependent_ns", "independent_ns", "adjacent_ns"};
    char *end = NULL;
    const unsigned long long bytes = count == 2 ? strtoull(words[1], &end, 10) : 0;
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    if (bytes < fault_bytes || bytes % huge_bytes != 0 || *end != '\0') {
        fprintf(stderr, "error: BYTES must be a multiple of %d, at least %d\n", huge_bytes, fault_bytes);
        return 2;
    }
    const size_t most = bytes / page_bytes;
    uint32_t *order = malloc(most * sizeof *order);
    if (order == NULL || !map(bytes)) {
        fputs("error: transparent huge pages are unavailable\n", stderr);
        return 3;
    }
    printf("{");
    for (int kind = 0; kind < kinds; kind++)
        printf("\"%s_fault_ns\":%.1f,", kind == 0 ? "base" : "huge", fault_ns(kind, kind == 0 ? page_bytes : huge_bytes));
    printf("\"translations\":[");
    for (size_t pages = least_pages; 2 * pages <= most; pages *= spacing) {
        double extra[patterns];
        measure(2 * pages, order, extra);
        printf("%s{\"pages\":%zu", pages == least_pages ? "" : ",", pages);
        for (int p = 0; p < patterns; p++) printf(",\"%s\":%.2f", names[p], extra[p] > 0 ? extra[p] : 0.0);
        printf("}");
    }
    printf("]}\n");
    free(order);
    return sum == 1 ? 1 : 0;
}
