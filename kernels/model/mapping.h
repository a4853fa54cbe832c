/* Which page an address of the program lies on in the modelled machine: that machine's huge page where the program's memory
   really lies on a huge page of this one, its base page elsewhere (docs/model.md). */
#ifndef PAGEWISE_MAPPING_H
#define PAGEWISE_MAPPING_H

#include "geometry.h"

#include <stdio.h>

/* What is asked of this machine at a time: its huge pages are at least this large and aligned to it. */
enum { PW_EXTENT_SHIFT = 21, PW_MAPPING_SLOTS = 4096 };

enum pw_mapping_rule {
    PW_OBSERVED, /* as it really lies */
    PW_ALL_BASE, /* all on base pages */
    PW_ALL_HUGE  /* all on huge pages: heap, stack, static data and code alike */
};

struct pw_mapping {
    enum pw_mapping_rule rule;
    /* Whether the 2 MiB of memory from `start` lie on a huge page; for PW_OBSERVED. */
    bool (*is_huge)(void *context, uint64_t start);
    void *context;
    uint64_t slot[PW_MAPPING_SLOTS]; /* what was answered: (extent + 1) * 2 + class; 0 is none */
};

static inline enum pw_page_class pw_mapping_class(struct pw_mapping *mapping, uint64_t address)
{
    const uint64_t extent = address >> PW_EXTENT_SHIFT;
    uint64_t *slot = &mapping->slot[extent % PW_MAPPING_SLOTS];
    if (*slot >> 1 != extent + 1) {
        enum pw_page_class class = mapping->rule == PW_ALL_HUGE ? PW_HUGE : PW_BASE;
        if (mapping->rule == PW_OBSERVED && mapping->is_huge(mapping->context, extent << PW_EXTENT_SHIFT)) class = PW_HUGE;
        *slot = (extent + 1) << 1 | (uint64_t)class;
    }
    return (enum pw_page_class)(*slot & 1);
}

/* Ask again: the program has changed its memory. */
void pw_mapping_forget(struct pw_mapping *mapping);

/* How the pages of this process are observed. */
struct pw_observer {
    int pagemap;      /* /proc/self/pagemap, if it tells of huge pages (Linux 6.7), else -1 */
    uint64_t unclear; /* extents in mappings that lie on huge pages in part, where smaps does not tell which: taken as base */
};

void pw_observer_open(struct pw_observer *observer);
void pw_observer_close(struct pw_observer *observer);

/* For pw_mapping.is_huge; the context is a pw_observer. */
bool pw_observer_is_huge(void *observer, uint64_t start);

/* The answer of the text of smaps: 1, 0, or -1 where only a part of the mapping is on huge pages. */
int pw_smaps_is_huge(FILE *smaps, uint64_t start);

#endif
