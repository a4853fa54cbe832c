/* See tlb.h. */
#include "tlb.h"

bool pw_tlb_open(struct pw_tlb *tlb, const struct pw_geometry *geometry)
{
    *tlb = (struct pw_tlb){.n_levels = geometry->n_tlb_levels};
    for (uint32_t level = 0; level < tlb->n_levels; level++) {
        for (uint32_t i = 0; i < geometry->n_tlbs[level]; i++) {
            const struct pw_tlb_geometry *one = &geometry->tlb[level][i];
            struct pw_sets *array = &tlb->array[level][i];
            if (!pw_sets_open(array, one->entries / one->ways, one->ways, one->replacement)) return false;
            for (int class = 0; class < PW_PAGE_CLASSES; class++)
                if (one->holds[class]) tlb->holds[level][class] = array;
        }
    }
    return true;
}

void pw_tlb_close(struct pw_tlb *tlb)
{
    for (uint32_t level = 0; level < PW_MOST_LEVELS; level++)
        for (int i = 0; i < PW_PAGE_CLASSES; i++) pw_sets_close(&tlb->array[level][i]);
}

uint32_t pw_tlb_access(struct pw_tlb *tlb, enum pw_page_class class, uint64_t page, uint32_t *refilled)
{
    const uint64_t key = pw_tlb_key(class, page);
    uint32_t level = 0;
    *refilled = 0;
    while (level < tlb->n_levels) {
        const struct pw_sets *array = tlb->holds[level][class];
        if (array != NULL) {
            if (pw_sets_touch(array, pw_sets_index(array, page), key, false)) break;
            *refilled |= 1U << level;
        }
        level++;
    }
    for (uint32_t i = 0; i < level; i++) {
        const struct pw_sets *array = tlb->holds[i][class];
        if (array != NULL) pw_sets_insert(array, pw_sets_index(array, page), key, false);
    }
    return level;
}
