/* See measure.h. */
#include "measure.h"

#include "pages.h"
#include "reported.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { most_pages = 16384, repetitions = 10, least_hops = 8192, line_bytes = PW_LINE_BYTES };

static struct pw_tlb_measured tlb;
static int64_t wrong;

struct chased {
    char *memory;
    uint8_t *occurred; /* how often each page is in a chase so far */
    int32_t *line;     /* scratch: an order of packed lines */
    uint64_t random;
};

static double nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void close_chased(struct chased *chased)
{
    free(chased->occurred);
    free(chased->line);
}

/* False: memory is exhausted. A chase that accesses each page twice has the most lines. */
static bool open_chased(struct chased *chased)
{
    chased->occurred = calloc(most_pages, 1);
    chased->line = malloc(2 * (size_t)most_pages * sizeof *chased->line);
    if (chased->occurred != NULL && chased->line != NULL) return true;
    close_chased(chased);
    return false;
}

/* The line of a page moves with its number, through the sets of the caches and through the base pages of a huge page: those are
 * different entries where the TLB splits huge pages. */
static int64_t place_in(int64_t page_bytes, int64_t page, int64_t occurrence)
{
    return page * page_bytes + (page + occurrence * 31) * (4096 + line_bytes) % page_bytes;
}

/* Links the chase; packed: adjacent lines, in random order, because prefetchers would follow another. */
static pw_tlb_link *join(struct chased *chased, int64_t stride, bool packed, int32_t n, const int32_t *page)
{
    pw_tlb_link head = {NULL}, *last = &head;
    for (int32_t i = 0; packed && i < n; i++) chased->line[i] = i;
    if (packed) pw_tlb_shuffle(&chased->random, n, chased->line);
    for (int32_t i = 0; i < n; i++) {
        const int64_t place = packed ? (int64_t)line_bytes * chased->line[i] : place_in(stride, page[i], chased->occurred[page[i]]++);
        last->next = (pw_tlb_link *)(void *)(chased->memory + place);
        last = last->next;
    }
    last->next = head.next;
    for (int32_t i = 0; i < n; i++) chased->occurred[page[i]] = 0;
    return head.next;
}

/* See pw_tlb_latency. */
static double measure_latency(void *context, int64_t stride, bool packed, int32_t n, const int32_t *page)
{
    pw_tlb_link *first = join(context, stride, packed, n, page);
    const int64_t hops = (least_hops + n - 1) / n * (int64_t)n;
    pw_tlb_link *at = pw_tlb_chase(n, first);
    const double start = nanoseconds();
    at = pw_tlb_chase(hops, at);
    const double end = nanoseconds();
    wrong += at != first;
    return (end - start) / (double)hops;
}

static bool infer(struct chased *chased, int64_t stride, int64_t bytes, int64_t seed, struct pw_tlb_estimate *estimate)
{
    struct pw_tlb_machine machine = {.latency = measure_latency, .context = chased, .stride = stride, .repetitions = repetitions};
    machine.most_pages = (int32_t)(bytes / stride < most_pages ? bytes / stride : most_pages);
    machine.seed = (uint64_t)seed;
    return pw_tlb_infer(&machine, estimate);
}

int64_t pw_tlb_page(const char *policy)
{
    struct pw_pages_policy estimate;
    struct pw_pages_failure failure;
    return pw_pages_policy_from_name(policy, &estimate, &failure) == PW_PAGES_OK ? pw_pages_size(&estimate) : 0;
}

bool pw_tlb_measure(void *memory, int64_t bytes, int64_t page, int64_t seed)
{
    struct chased chased = {.memory = memory, .random = (uint64_t)seed};
    if (!open_chased(&chased)) return false;
    tlb = (struct pw_tlb_measured){.page = page};
    tlb.base = sysconf(_SC_PAGESIZE);
    tlb.held = page;
    bool done = infer(&chased, page, bytes, seed, &tlb.estimate);
    if (done && page > tlb.base) {
        /* Base pages of huge memory: if they fill the first level as fast as the huge pages do, the TLB holds base pages. */
        struct pw_tlb_estimate split;
        const double ratio = (double)page / (double)tlb.base;
        done = infer(&chased, tlb.base, bytes, seed, &split);
        const double entries = tlb.estimate.levels > 0 ? tlb.estimate.level[0].entries : sqrt(ratio);
        if (done && split.levels > 0 && split.level[0].entries < sqrt(ratio) * entries) {
            tlb.estimate = split;
            tlb.held = tlb.base;
        }
    }
    tlb.pages = (int32_t)(bytes / tlb.held < most_pages ? bytes / tlb.held : most_pages);
    close_chased(&chased);
    return done;
}

pw_tlb_link *pw_tlb_join(void *memory, int64_t pages, int64_t page, int64_t seed)
{
    const int32_t n = (int32_t)pages;
    struct chased chased = {.memory = memory, .random = (uint64_t)seed};
    if (!open_chased(&chased)) return NULL;
    for (int32_t i = 0; i < n; i++) chased.line[i] = i;
    pw_tlb_shuffle(&chased.random, n, chased.line);
    pw_tlb_link *first = join(&chased, page, false, n, chased.line);
    close_chased(&chased);
    return first;
}

int64_t pw_tlb_wrong(void)
{
    return wrong;
}

bool pw_tlb_figure(int32_t i, char *field, int32_t length, double *value)
{
    static const char *const names[] = {"entries", "entries_confidence", "ways", "ways_confidence", "replacement",
                                        "replacement_confidence", "miss_ns", "miss_confidence"};
    enum { first = 4, each = sizeof names / sizeof *names };
    const int32_t levels = tlb.estimate.levels, at = i - first;
    const double heads[first] = {levels > 0 ? tlb.estimate.level[levels - 1].cost_ns : 0, levels, tlb.pages, (double)tlb.held};
    static const char *const head[first] = {"walk_ns", "tlb_levels", "pages_chased", "bytes_per_entry"};
    if (i < first) {
        (void)snprintf(field, (size_t)length, "%s", head[i]);
        *value = heads[i];
        return true;
    }
    if (at >= levels * each) return false;
    const struct pw_tlb_level *level = &tlb.estimate.level[at / each];
    const double values[each] = {level->entries, level->entries_confidence, level->ways, level->ways_confidence,
                                 level->replacement, level->replacement_confidence, level->cost_ns,
                                 level->cost_confidence};
    (void)snprintf(field, (size_t)length, "l%d_%s", at / each + 1, names[at % each]);
    *value = values[at % each];
    return true;
}

const struct pw_tlb_measured *pw_tlb_result(void)
{
    return &tlb;
}

static const char *replacement_of(const struct pw_tlb_level *level)
{
    if (level->replacement == pw_tlb_lru) return "LRU";
    return level->replacement == pw_tlb_fifo ? "FIFO" : "neither LRU nor FIFO";
}

static const char *compared(int32_t estimate, int32_t reported)
{
    return estimate == reported ? "equal" : "different";
}

/* Prints whether CPUID reports the same of a level; returns whether it reports the level. */
static bool print_reported(int level)
{
    const struct pw_tlb_level *seen = &tlb.estimate.level[level - 1];
    const struct pw_tlb_reported reported = pw_tlb_reported(pw_cpuid_of_machine, level, tlb.held);
    if (reported.entries == 0) return false;
    printf("      CPUID: %d entries (%s), %d ways (%s)\n", reported.entries, compared(seen->entries, reported.entries),
           reported.ways, compared(seen->ways, reported.ways));
    return true;
}

void pw_tlb_print(void)
{
    const struct pw_tlb_estimate *estimate = &tlb.estimate;
    const bool machine = pw_tlb_virtual(pw_cpuid_of_machine);
    int reported = 0;
    printf("data TLB, by chases through up to %d pages of %lld KiB\n", tlb.pages, (long long)(tlb.held / 1024));
    if (tlb.held < tlb.page)
        printf("  it holds pages of %lld KiB as base pages: an entry translates %lld KiB%s\n", (long long)(tlb.page / 1024),
               (long long)(tlb.held / 1024),
               machine ? ". The host of this virtual machine has base pages; huge pages only shorten the two-dimensional walk" : "");
    for (int i = 0; i < estimate->levels; i++) {
        const struct pw_tlb_level *level = &estimate->level[i];
        printf("  L%d  %d entries (%.0f %%), %d ways%s (%.0f %%), %s (%.0f %%); a miss costs %.2f ns (%.0f %%)%s\n", i + 1,
               level->entries, 100 * level->entries_confidence, level->ways, level->hashed ? ", hashed index" : "",
               100 * level->ways_confidence, replacement_of(level), 100 * level->replacement_confidence, level->cost_ns,
               100 * level->cost_confidence, i + 1 == estimate->levels ? ": a page walk, unless a larger level follows" : "");
        reported += print_reported(i + 1);
    }
    if (estimate->levels == 0) printf("  all of them hit the first level\n");
    printf("  levels with more than %d entries are not detected\n", tlb.pages / 4);
    if (reported == 0) printf("  CPUID reports no such TLB%s\n", machine ? ": hypervisors hide these leaves" : "");
    if (reported > 0 && machine) printf("  a hypervisor is present: what CPUID reports may not be this processor's\n");
    (void)fflush(stdout);
}
