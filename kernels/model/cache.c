/* See cache.h. */
#include "cache.h"

#include <stddef.h>

bool pw_cache_open(struct pw_cache *cache, const struct pw_geometry *geometry)
{
    *cache = (struct pw_cache){.n_levels = geometry->n_cache_levels};
    while (UINT64_C(1) << cache->line_shift < geometry->line) cache->line_shift++;
    for (uint32_t level = 0; level < cache->n_levels; level++) {
        const struct pw_cache_geometry *one = &geometry->cache[level];
        cache->geometry[level] = *one;
        if (!pw_sets_open(&cache->array[level], (uint32_t)(one->bytes / geometry->line / one->ways), one->ways, PW_LRU))
            return false;
    }
    return true;
}

void pw_cache_close(struct pw_cache *cache)
{
    for (uint32_t level = 0; level < PW_MOST_LEVELS; level++) pw_sets_close(&cache->array[level]);
}

static uint32_t set_of(const struct pw_cache *cache, uint32_t level, uint64_t line)
{
    const struct pw_cache_geometry *geometry = &cache->geometry[level];
    uint64_t set = line;
    for (uint32_t i = 0; i < geometry->n_hashes; i++) {
        const struct pw_hash_geometry *hash = &geometry->hash[i];
        set ^= (line << cache->line_shift >> hash->lowest & ((UINT64_C(1) << hash->width) - 1)) << hash->shift;
    }
    return (uint32_t)(set % cache->array[level].sets);
}

bool pw_cache_assign(struct pw_cache *cache, uint64_t address, uint64_t bytes, uint32_t sector)
{
    if (cache->n_assigned == PW_MOST_ARRAYS) return false;
    const uint64_t first = address >> cache->line_shift, last = (address + bytes - 1) >> cache->line_shift;
    cache->assigned[cache->n_assigned++] = (struct pw_sector_lines){first, last, sector};
    return true;
}

/* The sector of a line in a level, 0 if its own has no ways there. The latest assignment counts: an array may be mapped
   where another one has been. */
static uint32_t sector_of(const struct pw_cache *cache, uint32_t level, uint64_t line)
{
    for (uint32_t i = cache->n_assigned; i-- > 0;) {
        const struct pw_sector_lines *of = &cache->assigned[i];
        if (line >= of->first && line <= of->last) return cache->geometry[level].sector_ways[of->sector] > 0 ? of->sector : 0;
    }
    return 0;
}

/* The entry of a full set that makes room for a line of `sector`, as the A64FX does (A64FX Specification, HPC Extension 1,
   1.2.1; Microarchitecture Manual 1.8.1, 12.2): the least recently used one of this sector if it has its ways, else of the
   sectors that exceed their share. */
static uint32_t to_evict(const struct pw_cache *cache, uint32_t level, const uint64_t *entry, uint32_t sector)
{
    const struct pw_cache_geometry *geometry = &cache->geometry[level];
    uint32_t used[PW_SECTORS] = {0}, in[geometry->ways];
    for (uint32_t i = 0; i < geometry->ways; i++) {
        in[i] = sector_of(cache, level, (entry[i] >> 1) - 1);
        used[in[i]]++;
    }
    const bool full = used[sector] >= geometry->sector_ways[sector];
    for (uint32_t i = geometry->ways; i-- > 0;)
        if (full ? in[i] == sector : used[in[i]] > geometry->sector_ways[in[i]]) return i;
    return geometry->ways - 1;
}

/* Insert a line that the level does not contain, as the latest. Ways that are free are used by any sector. */
static struct pw_evicted insert(struct pw_cache *cache, uint32_t level, uint64_t line, bool modified)
{
    const struct pw_sets *array = &cache->array[level];
    const uint32_t set = set_of(cache, level, line);
    uint64_t *entry = pw_sets_of(array, set);
    if (!cache->geometry[level].has_sectors || entry[array->ways - 1] == 0) return pw_sets_insert(array, set, line, modified);
    const uint64_t key = (entry[to_evict(cache, level, entry, sector_of(cache, level, line))] >> 1) - 1;
    const struct pw_evicted out = pw_sets_remove(array, set, key);
    pw_sets_insert(array, set, line, modified);
    return out;
}

/* Insert a line into a level that does not contain it, and pass evicted lines from level to level. */
static void put(struct pw_cache *cache, uint32_t level, uint64_t line, bool modified)
{
    for (;;) {
        struct pw_evicted out = insert(cache, level, line, modified);
        if (!out.any) return;
        if (cache->geometry[level].inclusion == PW_INCLUSIVE) {
            for (uint32_t inner = 0; inner < level; inner++) {
                const struct pw_evicted copy = pw_sets_remove(&cache->array[inner], set_of(cache, inner, out.key), out.key);
                if (copy.any && copy.marked) {
                    cache->write_backs[inner]++;
                    out.marked = true;
                }
            }
        }
        if (out.marked) cache->write_backs[level]++;
        level++;
        if (level == cache->n_levels) return;
        const bool victim = cache->geometry[level].inclusion == PW_VICTIM;
        if (!victim && !out.marked) return;
        const uint32_t set = set_of(cache, level, out.key);
        if (victim) {
            if (pw_sets_touch(&cache->array[level], set, out.key, out.marked)) return;
        } else if (pw_sets_mark(&cache->array[level], set, out.key)) {
            return;
        }
        line = out.key;
        modified = out.marked;
    }
}

uint32_t pw_cache_access(struct pw_cache *cache, uint64_t line, bool store)
{
    uint32_t level = 0;
    bool modified = false;
    for (; level < cache->n_levels; level++) {
        const struct pw_sets *array = &cache->array[level];
        const uint32_t set = set_of(cache, level, line);
        if (cache->geometry[level].inclusion == PW_VICTIM) {
            const struct pw_evicted moved = pw_sets_remove(array, set, line);
            modified = moved.any && moved.marked;
            if (moved.any) break;
        } else if (pw_sets_touch(array, set, line, store && level == 0)) {
            break;
        }
    }
    for (uint32_t i = level; i-- > 0;) {
        if (cache->geometry[i].inclusion == PW_VICTIM) continue;
        put(cache, i, line, modified || (store && i == 0));
        modified = false;
    }
    return level;
}
