/* The data caches of one core: write-back, write-allocate, LRU; no prefetch, no other core. */
#ifndef PAGEWISE_CACHE_H
#define PAGEWISE_CACHE_H

#include "geometry.h"

/* Memory of a sector other than 0, from its first line to its last. */
struct pw_sector_lines {
    uint64_t first, last;
    uint32_t sector;
};

struct pw_cache {
    uint32_t n_levels;
    struct pw_sets array[PW_MOST_LEVELS];
    struct pw_cache_geometry geometry[PW_MOST_LEVELS];
    unsigned line_shift;
    uint32_t n_assigned;
    struct pw_sector_lines assigned[PW_MOST_ARRAYS];
    uint64_t write_backs[PW_MOST_LEVELS]; /* modified lines that left the level for the next one, or memory */
};

bool pw_cache_open(struct pw_cache *cache, const struct pw_geometry *geometry);
void pw_cache_close(struct pw_cache *cache);

/* Memory from `address` on belongs to a sector from now on; what is cached stays where it is. False if the memory of too many
   arrays was assigned. */
bool pw_cache_assign(struct pw_cache *cache, uint64_t address, uint64_t bytes, uint32_t sector);

/* Access the line of this number (address / its size). Returns the level that contained it, from 0; n_levels for memory. All
   levels before that missed it, and now contain it, except for victim caches. */
uint32_t pw_cache_access(struct pw_cache *cache, uint64_t line, bool store);

#endif
