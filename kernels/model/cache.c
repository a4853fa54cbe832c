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

/* Insert a line into a level that does not contain it, and pass evicted lines from level to level. */
static void put(struct pw_cache *cache, uint32_t level, uint64_t line, bool modified)
{
    for (;;) {
        struct pw_evicted out = pw_sets_insert(&cache->array[level], set_of(cache, level, line), line, modified);
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
