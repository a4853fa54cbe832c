/* See model.h. */
#include "model.h"

#include <stdlib.h>

static unsigned shift_of(uint64_t power_of_two)
{
    unsigned shift = 0;
    while (UINT64_C(1) << shift < power_of_two) shift++;
    return shift;
}

struct pw_model *pw_model_open(const struct pw_geometry *geometry)
{
    struct pw_model *model = calloc(1, sizeof *model);
    if (model == NULL) return NULL;
    model->geometry = *geometry;
    pw_mapping_set(&model->mapping, PW_ALL_BASE, NULL, NULL);
    model->page_shift[PW_BASE] = shift_of(geometry->page[PW_BASE]);
    model->page_shift[PW_HUGE] = shift_of(geometry->entry);
    model->line_shift = shift_of(geometry->line);
    bool opened = pw_tlb_open(&model->tlb, geometry) && pw_cache_open(&model->cache, geometry);
    for (uint32_t i = 0; i < geometry->n_distances; i++)
        opened &= pw_sets_open(&model->accessed[i], geometry->distance[i] / PW_DISTANCE_WAYS, PW_DISTANCE_WAYS, PW_LRU);
    if (!opened) {
        pw_model_close(model);
        return NULL;
    }
    return model;
}

void pw_model_close(struct pw_model *model)
{
    if (model == NULL) return;
    pw_tlb_close(&model->tlb);
    pw_tlb_close(&model->tlb_on_huge);
    pw_cache_close(&model->cache);
    for (uint32_t i = 0; i < PW_MOST_DISTANCES; i++) pw_sets_close(&model->accessed[i]);
    free(model);
}

bool pw_model_open_on_huge(struct pw_model *model, enum pw_mapping_rule rule, bool (*is_huge)(void *, uint64_t), void *context)
{
    if (model->tlb.holds[0][PW_HUGE] == NULL) return false;
    pw_mapping_set(&model->mapping_on_huge, rule, is_huge, context);
    return pw_tlb_open(&model->tlb_on_huge, &model->geometry);
}

static uint32_t access_on_huge(struct pw_model *model, uint64_t address)
{
    const enum pw_page_class class = pw_mapping_class(&model->mapping_on_huge, address);
    uint32_t refilled;
    const uint32_t translated = pw_tlb_access(&model->tlb_on_huge, class, address >> model->page_shift[class], &refilled);
    if (translated == 0) return 0;
    model->count[PW_TLB_REFILL_ON_HUGE]++;
    if (translated < model->tlb.n_levels) return PW_MISSED_TLB_ON_HUGE;
    model->count[PW_PAGE_WALKS_ON_HUGE]++;
    return PW_MISSED_TLB_ON_HUGE | PW_MISSED_ALL_TLBS_ON_HUGE;
}

/* How many distances an access exceeds that missed the first TLB: as the further TLBs of a processor, they see no others. Pages are spread over the sets, whatever the program's strides. */
static uint32_t distances_exceeded(struct pw_model *model, uint64_t page)
{
    const struct pw_sets *accessed = model->accessed;
    const uint64_t spread = page * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    uint32_t exceeded = 0;
    while (exceeded < model->geometry.n_distances &&
           !pw_sets_touch(&accessed[exceeded], pw_sets_index(&accessed[exceeded], spread), page, false))
        exceeded++;
    for (uint32_t i = 0; i < exceeded; i++) pw_sets_insert(&accessed[i], pw_sets_index(&accessed[i], spread), page, false);
    return exceeded;
}

/* The newest entry of an address's set in a first TLB; NULL if it is not that of its page. */
static const uint64_t *newest(const struct pw_model *model, const struct pw_tlb *tlb, struct pw_mapping *mapping, uint64_t address)
{
    const enum pw_page_class class = pw_mapping_class(mapping, address);
    const uint64_t page = address >> model->page_shift[class];
    const struct pw_sets *array = tlb->holds[0][class];
    if (array == NULL) return NULL;
    const uint64_t *set = pw_sets_of(array, pw_sets_index(array, page));
    return *set >> 1 == pw_tlb_key(class, page) + 1 ? set : NULL;
}

static void remember(struct pw_model *model, uint64_t address)
{
    const uint64_t page = address >> PW_SMALLEST_SHIFT;
    const uint64_t *entry = newest(model, &model->tlb, &model->mapping, address), *on_huge = entry;
    if (model->tlb_on_huge.n_levels > 0) on_huge = newest(model, &model->tlb_on_huge, &model->mapping_on_huge, address);
    if (entry != NULL && on_huge != NULL)
        model->latest[page % PW_LATEST] = (struct pw_latest){page + 1, entry, on_huge, *entry, *on_huge};
}

static uint32_t access_line(struct pw_model *model, uint64_t line, bool store)
{
    uint64_t *count = model->count;
    const uint64_t address = line << model->line_shift;
    const enum pw_page_class class = pw_mapping_class(&model->mapping, address);
    uint32_t missed = 0, refilled;
    count[PW_LOOKUPS]++;
    count[PW_HUGE_ACCESSES] += class == PW_HUGE;
    const uint32_t translated = pw_tlb_access(&model->tlb, class, address >> model->page_shift[class], &refilled);
    if (translated > 0) {
        missed = PW_MISSED_TLB;
        if (model->geometry.n_distances > 0)
            missed |= distances_exceeded(model, address >> model->page_shift[PW_BASE]) << PW_DISTANCE_SHIFT;
        for (uint32_t level = 0; level < translated; level++) count[PW_TLB_REFILL + level] += refilled >> level & 1;
        if (translated == model->tlb.n_levels) {
            count[PW_PAGE_WALKS]++;
            missed |= PW_MISSED_ALL_TLBS;
        }
    }
    if (model->tlb_on_huge.n_levels > 0) missed |= access_on_huge(model, address);
    if (model->cache.n_levels == 0) {
        remember(model, address);
        return missed;
    }
    const uint32_t hit_level = pw_cache_access(&model->cache, line, store);
    if (hit_level > 0) {
        missed |= PW_MISSED_CACHE;
        for (uint32_t level = 0; level < hit_level; level++) count[PW_CACHE_REFILL + level]++;
        if (hit_level == model->cache.n_levels) missed |= PW_MISSED_ALL_CACHES;
    }
    return missed;
}

uint32_t pw_model_access(struct pw_model *model, uint64_t address, uint32_t bytes, bool store)
{
    const uint64_t first = address >> model->line_shift, last = (address + bytes - 1) >> model->line_shift;
    if (first == last && first + 1 == model->last_line && (!store || model->last_store || model->cache.n_levels == 0)) {
        model->count[PW_LOOKUPS]++;
        model->count[PW_HUGE_ACCESSES] += pw_mapping_class(&model->mapping, address) == PW_HUGE;
        return 0;
    }
    uint32_t missed = 0;
    for (uint64_t line = first; line <= last; line++) missed |= access_line(model, line, store);
    model->last_line = last + 1;
    model->last_store = store;
    return missed;
}

void pw_model_forget(struct pw_model *model)
{
    pw_mapping_forget(&model->mapping);
    pw_mapping_forget(&model->mapping_on_huge);
    memset(model->latest, 0, sizeof model->latest);
}

void pw_model_counts(const struct pw_model *model, uint64_t counts[PW_COUNTS])
{
    memcpy(counts, model->count, sizeof model->count);
    memcpy(counts + PW_CACHE_WRITE_BACK, model->cache.write_backs, sizeof model->cache.write_backs);
}

const char *pw_model_name(const struct pw_model *model, enum pw_count count)
{
    static const char *const tlb[] = {"L1D_TLB_REFILL", "L2D_TLB_REFILL", "L3D_TLB_REFILL"};
    static const char *const refill[] = {"L1D_CACHE_REFILL", "L2D_CACHE_REFILL", "L3D_CACHE_REFILL"};
    static const char *const back[] = {"L1D_CACHE_WB", "L2D_CACHE_WB", "L3D_CACHE_WB"};
    if (model->only_misses && PW_LOADS <= count && count <= PW_LOOKUPS) return NULL;
    switch (count) {
    case PW_INSTRUCTIONS: return "INSTRUCTIONS";
    case PW_LOADS: return "LOADS";
    case PW_STORES: return "STORES";
    case PW_HUGE_ACCESSES: return "HUGE_PAGE_LOOKUPS";
    case PW_LOOKUPS: return "L1D_CACHE";
    case PW_PAGE_WALKS: return "PAGE_WALKS";
    case PW_TLB_REFILL_ON_HUGE: return model->tlb_on_huge.n_levels > 0 ? "L1D_TLB_REFILL_ON_HUGE" : NULL;
    case PW_PAGE_WALKS_ON_HUGE: return model->tlb_on_huge.n_levels > 0 ? "PAGE_WALKS_ON_HUGE" : NULL;
    default: break;
    }
    if (count >= PW_CACHE_WRITE_BACK) {
        const uint32_t level = (uint32_t)count - PW_CACHE_WRITE_BACK;
        return level < model->cache.n_levels ? back[level] : NULL;
    }
    if (count >= PW_CACHE_REFILL) {
        const uint32_t level = (uint32_t)count - PW_CACHE_REFILL;
        return level < model->cache.n_levels ? refill[level] : NULL;
    }
    const uint32_t level = (uint32_t)count - PW_TLB_REFILL;
    return level < model->tlb.n_levels ? tlb[level] : NULL;
}
