/* The levels of a data TLB, inferred from nothing but latencies of chases through pages. */
#ifndef PAGEWISE_TLB_INFER_H
#define PAGEWISE_TLB_INFER_H

#include <stdbool.h>
#include <stdint.h>

enum { pw_tlb_levels = 3 };
enum { pw_tlb_unknown, pw_tlb_lru, pw_tlb_fifo };

/* Nanoseconds per load of a cyclic chase through pages, by number, `stride` bytes apart. A page that occurs again is accessed in
 * another line. With packed, the same number of lines in as few pages as possible. */
typedef double pw_tlb_latency(void *context, int64_t stride, bool packed, int32_t n, const int32_t *page);

struct pw_tlb_machine {
    pw_tlb_latency *latency;
    void *context;
    int64_t stride;      /* distance of pages in bytes */
    int32_t most_pages;  /* pages 0 to most_pages - 1 can be accessed */
    int32_t repetitions; /* of each chase; the fastest counts */
    uint64_t seed;       /* of the order of pages and measurements */
};

/* A level: entries, ways (as many as entries: fully associative) and replacement (unknown: neither, such as pseudo-LRU, or not
 * measured); cost: nanoseconds that a load takes longer if it
 * misses this level and no other. The confidence of each is the probability that the tests behind it erred in none. */
struct pw_tlb_level {
    int32_t entries, ways, replacement, hashed;
    double cost_ns;
    double entries_confidence, ways_confidence, replacement_confidence, cost_confidence;
};

/* The levels that were exceeded, the first first; a miss of the last one is a page walk. */
struct pw_tlb_estimate {
    int32_t levels;
    struct pw_tlb_level level[pw_tlb_levels];
};

/* Fisher and Yates, with a state of splitmix64. */
void pw_tlb_shuffle(uint64_t *state, int32_t n, int32_t *number);

/* False: memory is exhausted. */
bool pw_tlb_infer(const struct pw_tlb_machine *machine, struct pw_tlb_estimate *estimate);

#endif
