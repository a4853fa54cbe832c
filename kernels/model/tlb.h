/* The data TLBs of one core: look-ups, and fills of all levels after a page walk. No prefetch. */
#ifndef PAGEWISE_TLB_H
#define PAGEWISE_TLB_H

#include "geometry.h"

struct pw_tlb {
    uint32_t n_levels;
    struct pw_sets array[PW_MOST_LEVELS][PW_PAGE_CLASSES];
    struct pw_sets *holds[PW_MOST_LEVELS][PW_PAGE_CLASSES]; /* NULL: no entries for such pages */
};

bool pw_tlb_open(struct pw_tlb *tlb, const struct pw_geometry *geometry);
void pw_tlb_close(struct pw_tlb *tlb);

/* The key of an entry. A base and a huge page with the same number are different entries of an array that holds both. */
static inline uint64_t pw_tlb_key(enum pw_page_class class, uint64_t page)
{
    return page * PW_PAGE_CLASSES + (uint64_t)class;
}

/* Translate an access to the page of this number (address / its size). Returns the level that contained it, from 0;
   n_levels after a page walk. Bits of *refilled: the levels that missed and now contain it. */
uint32_t pw_tlb_access(struct pw_tlb *tlb, enum pw_page_class class, uint64_t page, uint32_t *refilled);

#endif
