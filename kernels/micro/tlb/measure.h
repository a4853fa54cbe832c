/* Measures the data TLB with chases through pages, and writes what was inferred. */
#ifndef PAGEWISE_TLB_MEASURE_H
#define PAGEWISE_TLB_MEASURE_H

#include "infer.h"
#include "pw_vector.h"

typedef struct pw_tlb_link {
    struct pw_tlb_link *next;
} pw_tlb_link;

/* The timed code: follow `hops` links; returns the last one. */
pw_tlb_link *pw_tlb_chase(int64_t hops, pw_tlb_link *at);

/* What was measured; held: the bytes that an entry translates, fewer than those of a page where the TLB splits it. */
struct pw_tlb_measured {
    int64_t base, page, held;
    int32_t pages; /* at most in a chase, of `held` bytes */
    struct pw_tlb_estimate estimate;
};

/* The page size in bytes that a policy such as thp:64k requests; 0: there is no such policy, or machine. */
int64_t pw_tlb_page(const char *policy);

/* Infer the TLB from chases through memory that starts at a page of `page` bytes. False: memory is exhausted. */
bool pw_tlb_measure(void *memory, int64_t bytes, int64_t page, int64_t seed);

/* Link a line of each of at most 16384 pages of `page` bytes to a random cycle; its first line. NULL: memory is exhausted. */
pw_tlb_link *pw_tlb_join(void *memory, int64_t pages, int64_t page, int64_t seed);

/* The number of chases so far that did not end where they have to. */
int64_t pw_tlb_wrong(void);

/* The figure `i`, counted from 0, of what was measured, as a field of the record; false: there are fewer. */
bool pw_tlb_figure(int32_t i, char *field, int32_t length, double *value);

/* Print what was measured, and what CPUID reports. */
void pw_tlb_print(void);

const struct pw_tlb_measured *pw_tlb_result(void);

/* Whether `file` can be written, and has no TLBs for pages of this size yet; else the reason, and what to do. */
bool pw_tlb_can_write(const char *file, int64_t page, char *reason, char *remedy, int32_t length);

/* Write a geometry file (docs/explanation/simulation.md), with the caches of the operating system, or add the TLBs of these pages
 * to one. False: the system refuses it or reports no caches, or no level was found. */
bool pw_tlb_write(const char *file);

#endif
