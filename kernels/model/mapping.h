/* The page of an address of the program in the simulated machine: by default that machine's huge page if the
   program's memory really is on a huge page of this machine, otherwise its base page (docs/explanation/simulation.md). */
#ifndef PAGEWISE_MAPPING_H
#define PAGEWISE_MAPPING_H

#include "geometry.h"

#include <pthread.h>
#include <stdio.h>

/* The extent of one query: 2 MiB, because pages of PMD size are at least this large (32 MiB and 512 MiB with base pages of 16
   and 64 KiB) and aligned to it; of smaller pages of a hugetlb pool, an extent that they fill. Or the smallest page of any
   machine, for mappings. */
enum { PW_EXTENT_SHIFT = 21, PW_SMALLEST_SHIFT = 12, PW_MAPPING_SLOTS = 4096 };

enum pw_mapping_rule {
    PW_OBSERVED, /* as observed */
    PW_ALL_BASE, /* all on base pages */
    PW_ALL_HUGE, /* all on huge pages: heap, stack, static data and code alike */
    PW_FJMPG     /* heap, stack and the program's static data on huge pages, as with Fujitsu's libmpg; all else on base pages */
};

struct pw_mapping {
    enum pw_mapping_rule rule;
    unsigned shift; /* log2 of the extent of a query */
    /* Whether the extent of memory from `start` is on a huge page; for PW_OBSERVED and PW_FJMPG. */
    bool (*is_huge)(void *context, uint64_t start);
    void *context;
    uint64_t slot[PW_MAPPING_SLOTS]; /* cached answers: (extent + 1) * 2 + class; 0 is none */
};

/* The rule, and its query. */
void pw_mapping_set(struct pw_mapping *mapping, enum pw_mapping_rule rule, bool (*is_huge)(void *, uint64_t), void *context);

static inline enum pw_page_class pw_mapping_class(struct pw_mapping *mapping, uint64_t address)
{
    const uint64_t extent = address >> mapping->shift;
    uint64_t *slot = &mapping->slot[extent % PW_MAPPING_SLOTS];
    if (*slot >> 1 != extent + 1) {
        enum pw_page_class class = mapping->rule == PW_ALL_HUGE ? PW_HUGE : PW_BASE;
        if (mapping->is_huge != NULL && mapping->is_huge(mapping->context, extent << mapping->shift)) class = PW_HUGE;
        *slot = (extent + 1) << 1 | (uint64_t)class;
    }
    return (enum pw_page_class)(*slot & 1);
}

/* Discard the answers: the program has changed its memory. */
void pw_mapping_forget(struct pw_mapping *mapping);

/* Memory from start to end. */
struct pw_stretch {
    uint64_t start, end;
};

/* The observation of this process's pages, for several threads. */
struct pw_observer {
    pthread_mutex_t lock; /* of the data */
    uint64_t changes;     /* of the process's mappings: pw_observer_forget */
    int pagemap;      /* /proc/self/pagemap, if it reports huge pages (Linux 6.7), else -1 */
    uint64_t unclear; /* extents in mappings partly on huge pages, if smaps does not show which: counted as base */
    const char *program;     /* its file; NULL: the first mapped file */
    struct pw_stretch *data; /* what libmpg would put on huge pages; read on first use */
    size_t n_data;
    uint64_t known; /* changes, when they were read */
};

void pw_observer_open(struct pw_observer *observer);
void pw_observer_close(struct pw_observer *observer);

/* The process has changed its mappings. */
void pw_observer_forget(struct pw_observer *observer);

/* For pw_mapping.is_huge; the context is a pw_observer. */
bool pw_observer_is_huge(void *observer, uint64_t start);
bool pw_observer_is_data(void *observer, uint64_t start);

/* The answer from the text of smaps: 1, 0, or -1 if only a part of the mapping is on huge pages. */
int pw_smaps_is_huge(FILE *smaps, uint64_t start);

/* The data of the program in the text of maps: mappings without a file (heap, stack, .bss), and writable mappings
   of the program's file, or of the first file if that is NULL. Not the data of shared libraries, nor their .bss, which
   follows their writable mapping: `bss` returns its bytes in memory. In order; returns their number, at most `most`. */
size_t pw_maps_data(FILE *maps, const char *program, uint64_t (*bss)(const char *file), struct pw_stretch *data, size_t most);

/* Bytes of whole pages of a 64-bit ELF file in memory that are not mapped from it; 0 for any other file. */
uint64_t pw_elf_bss(const char *file);

#endif
