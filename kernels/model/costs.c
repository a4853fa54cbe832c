/* What memory on base pages costs more than on huge pages, by how it is accessed: docs/explanation/origins.md.

       pagewise-costs BYTES

   The same lines are read in two blocks of BYTES bytes, one on base pages and one on transparent huge pages, in turns: nothing but the
   translation of addresses differs. Prints JSON: for each number of base pages that a program accesses between two accesses to
   a page (`pages`), nanoseconds of an access whose address the last one loaded (`dependent_ns`), of one whose address is known
   (`independent_ns`), and of one page of a stream (`adjacent_ns`); and of the first access to a page and its release (`base_fault_ns`, `huge_fault_ns`).
   Exit codes: 2 for a wrong argument, 3 if huge pages are unavailable. */
#define _GNU_SOURCE
#include "mapping.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { line_bytes = 64, huge_bytes = 1 << PW_EXTENT_SHIFT, fault_bytes = 32 << 20 };
enum { least_pages = 256, repetitions = 9, few_lines = 4, most_lines = 1 << 16, assumed_cache = 1 << 20, streamed_pages = 1 << 11 };
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

/* xorshift64* (Vigna, An experimental exploration of Marsaglia's xorshift generators, 2016). */
static uint64_t random_number(void)
{
    static uint64_t state = 1;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * UINT64_C(2685821657736338717);
}

/* Nanoseconds of an access: along the links. */
static double dependent(const struct link *link, size_t accesses)
{
    const double begin = now_ns(CLOCK_MONOTONIC);
    for (size_t i = 0; i < accesses; i++) link = link->next;
    const double end = now_ns(CLOCK_MONOTONIC);
    sum += (uintptr_t)link;
    return (end - begin) / (double)accesses;
}

/* Of an access: to these lines, again and again. */
static double independent(const char *memory, const uint32_t *line, size_t lines, size_t accesses)
{
    const double begin = now_ns(CLOCK_MONOTONIC);
    for (size_t i = 0, at = 0; i < accesses; i++) {
        sum += *(const volatile uint64_t *)(const void *)(memory + (size_t)line[at] * line_bytes);
        at = at + 1 == lines ? 0 : at + 1;
    }
    return (now_ns(CLOCK_MONOTONIC) - begin) / (double)accesses;
}

/* Of a page: all lines of pages in the order of their addresses. */
static double adjacent(const char *memory, size_t pages)
{
    const double begin = now_ns(CLOCK_MONOTONIC);
    for (size_t i = 0; i < streamed_pages; i++) {
        const char *page = memory + i % pages * page_bytes;
        for (size_t k = 0; k < page_bytes; k += line_bytes) sum += *(const volatile uint64_t *)(const void *)(page + k);
    }
    return (now_ns(CLOCK_MONOTONIC) - begin) / (double)streamed_pages;
}

static struct link *link_at(int kind, uint32_t line)
{
    return (struct link *)(void *)(block[kind] + (size_t)line * line_bytes);
}

/* Lists lines of the pages from `offset` on: page by page in a random order, again and again, each time another line of each page. They
   are the links of a ring, in both blocks. */
static void join(size_t offset, size_t pages, size_t lines, uint32_t *line)
{
    const uint32_t each = (uint32_t)(page_bytes / line_bytes);
    for (size_t i = 0; i < pages; i++) line[i] = (uint32_t)((offset + i) * each + random_number() % each);
    for (size_t i = pages - 1; i > 0; i--) {
        const size_t k = random_number() % (i + 1);
        const uint32_t kept = line[i];
        line[i] = line[k];
        line[k] = kept;
    }
    for (size_t i = pages; i < lines; i++) line[i] = line[i - pages] / each * each + (line[i - pages] + 1) % each;
    for (int kind = 0; kind < kinds; kind++)
        for (size_t i = 0; i < lines; i++) link_at(kind, line[i])->next = link_at(kind, line[(i + 1) % lines]);
}

/* The difference between the blocks, base less huge, in each pattern, where `pages` of `most` pages are accessed in turn: the
   median over several places of a block, because the placement of physical pages matters. */
static void measure(size_t pages, size_t most, uint32_t *line, double extra[patterns])
{
    double difference[patterns][repetitions];
    /* Data that are about as large as the second cache would show how well the pages use its sets, and little else. */
    const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    const bool large = pages * page_bytes >= 4 * (size_t)(cache > 0 ? cache : assumed_cache);
    const size_t some = !large ? few_lines * pages : pages < most_lines ? most_lines : pages;
    const size_t lines = some / pages * pages, accesses = lines < most_lines ? most_lines / lines * lines : most_lines;
    for (int r = 0; r < repetitions; r++) {
        double ns[kinds][patterns];
        const size_t offset = (size_t)r * (most - pages) / (repetitions - 1);
        join(offset, pages, lines, line);
        for (int p = 0; p < patterns; p++)
            for (int i = 0; i < kinds; i++) {
                const int kind = r & 1 ? i : 1 - i;
                ns[kind][p] = p == 0   ? dependent(link_at(kind, line[0]), accesses)
                              : p == 1 ? independent(block[kind], line, lines, accesses)
                                       : adjacent(block[kind] + offset * page_bytes, pages);
            }
        for (int p = 0; p < patterns; p++) difference[p][r] = ns[0][p] - ns[1][p];
    }
    for (int p = 0; p < patterns; p++) extra[p] = median(difference[p], repetitions);
}

static void touch(char *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += page_bytes) ((volatile char *)memory)[i] = 1;
}

/* CPU time of the first access to each page of a kind and of its release, of which the block has `size` bytes each. */
static double fault_ns(int kind, size_t size)
{
    double ns[repetitions];
    madvise(block[kind], fault_bytes, MADV_DONTNEED);
    for (int r = 0; r < repetitions; r++) {
        const double begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
        touch(block[kind], fault_bytes);
        madvise(block[kind], fault_bytes, MADV_DONTNEED);
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
    uint32_t *line = malloc((most > most_lines ? most : most_lines) * sizeof *line);
    if (line == NULL || !map(bytes)) {
        free(line);
        fputs("error: transparent huge pages are unavailable\n", stderr);
        return 3;
    }
    printf("{");
    for (int kind = 0; kind < kinds; kind++)
        printf("\"%s_fault_ns\":%.1f,", kind == 0 ? "base" : "huge", fault_ns(kind, kind == 0 ? page_bytes : huge_bytes));
    printf("\"translations\":[");
    for (size_t pages = least_pages; 2 * pages <= most; pages *= 2) {
        double extra[patterns];
        measure(pages + pages / 2, most, line, extra); /* between this distance and the next */
        printf("%s{\"pages\":%zu", pages == least_pages ? "" : ",", pages);
        for (int p = 0; p < patterns; p++) printf(",\"%s\":%.2f", names[p], extra[p] > 0 ? extra[p] : 0.0);
        printf("}");
    }
    printf("]}\n");
    free(line);
    return sum == 1 ? 1 : 0;
}
