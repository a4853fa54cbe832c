/* TLBs and data caches fed with a program's memory accesses: docs/explanation/simulation.md. */
#ifndef PAGEWISE_MODEL_H
#define PAGEWISE_MODEL_H

#include "cache.h"
#include "mapping.h"
#include "tlb.h"

/* The counts. A REFILL is a miss of that level that was then filled. The names follow Arm's common events. */
enum pw_count {
    PW_INSTRUCTIONS, /* added by the caller */
    PW_LOADS,
    PW_STORES,
    PW_HUGE_ACCESSES, /* of the look-ups below, those on huge pages */
    PW_LOOKUPS,       /* lines accessed: an access across a line's end is two */
    PW_TLB_REFILL,    /* one for each level follows */
    PW_PAGE_WALKS = PW_TLB_REFILL + PW_MOST_LEVELS,
    PW_CACHE_REFILL, /* one for each level follows; of a victim cache, its misses */
    PW_CACHE_WRITE_BACK = PW_CACHE_REFILL + PW_MOST_LEVELS, /* one for each level follows */
    PW_TLB_REFILL_ON_HUGE = PW_CACHE_WRITE_BACK + PW_MOST_LEVELS, /* of the first level of the second TLBs */
    PW_PAGE_WALKS_ON_HUGE,
    PW_COUNTS
};

enum { PW_LATEST = 64 /* pages that are remembered */ };

/* What one access missed. */
enum {
    PW_MISSED_TLB = 1,
    PW_MISSED_ALL_TLBS = 2,
    PW_MISSED_CACHE = 4,
    PW_MISSED_ALL_CACHES = 8,
    PW_MISSED_TLB_ON_HUGE = 16,
    PW_MISSED_ALL_TLBS_ON_HUGE = 32,
    PW_DISTANCE_SHIFT = 8 /* above: how many of the geometry's distances it exceeds */
};

/* A page, plus one, that was accessed, its newest entries of their sets in the first TLBs, and their values. As long as they are the newest,
   further accesses change nothing. */
struct pw_latest {
    uint64_t page;
    const uint64_t *entry, *on_huge;
    uint64_t value, value_on_huge;
};

struct pw_model {
    struct pw_geometry geometry;
    struct pw_tlb tlb;
    struct pw_cache cache;
    struct pw_mapping mapping;
    unsigned page_shift[PW_PAGE_CLASSES], line_shift;
    uint64_t last_line; /* the previous access, plus one; another access to it changes nothing */
    bool last_store;
    bool only_misses; /* are complete: the other counts are not */
    uint64_t count[PW_COUNTS];
    struct pw_latest latest[PW_LATEST]; /* without caches */
    /* Second TLBs of the same geometry, for the same accesses with data on huge pages; without levels: none. */
    struct pw_tlb tlb_on_huge;
    struct pw_mapping mapping_on_huge;
    /* The base pages accessed last, as many as each distance. */
    struct pw_sets accessed[PW_MOST_DISTANCES];
};

/* An empty machine; NULL if memory is exhausted. The mapping treats all pages as base pages until set otherwise. */
struct pw_model *pw_model_open(const struct pw_geometry *geometry);
void pw_model_close(struct pw_model *model);

/* Simulate second TLBs as well, with pages by this rule. False: memory is exhausted, or the first level has no entries for
   huge pages. */
bool pw_model_open_on_huge(struct pw_model *model, enum pw_mapping_rule rule, bool (*is_huge)(void *, uint64_t), void *context);

/* The program accesses `bytes` bytes at an address. Counts look-ups and misses, not LOADS and STORES: an instruction's access may
   arrive in pieces. Returns its misses. */
uint32_t pw_model_access(struct pw_model *model, uint64_t address, uint32_t bytes, bool store);

/* Whether an access of at most 16 bytes would change nothing but the number of look-ups. */
static inline bool pw_model_is_latest(const struct pw_model *model, uint64_t address)
{
    const uint64_t page = address >> PW_SMALLEST_SHIFT, size = UINT64_C(1) << PW_SMALLEST_SHIFT;
    const struct pw_latest *latest = &model->latest[page % PW_LATEST];
    return latest->page == page + 1 && *latest->entry == latest->value && *latest->on_huge == latest->value_on_huge &&
           address % size <= size - 16;
}

/* Discard what is known of the pages: the program has changed its memory. */
void pw_model_forget(struct pw_model *model);

/* The counts up to now. */
void pw_model_counts(const struct pw_model *model, uint64_t counts[PW_COUNTS]);

/* The name of a count; NULL if the geometry does not have the level. */
const char *pw_model_name(const struct pw_model *model, enum pw_count count);

#endif
