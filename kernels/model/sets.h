/* A set-associative array of keys, each with a mark (dirty), with true LRU or FIFO replacement: the basis of TLBs and
   caches. A set's entries are in the order of their last use (LRU) or of their insertion (FIFO), the latest first. */
#ifndef PAGEWISE_SETS_H
#define PAGEWISE_SETS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum pw_replacement { PW_LRU, PW_FIFO };

struct pw_sets {
    uint32_t sets, ways;
    uint32_t mask; /* one less than the sets where they are a power of two, else 0 */
    enum pw_replacement replacement;
    uint64_t *entries; /* [sets][ways]: 0 is free, else (key + 1) * 2 + mark */
};

/* The result of an insertion: the evicted entry. */
struct pw_evicted {
    bool any, marked;
    uint64_t key;
};

/* `ways` entries in each of `sets` sets, all free; false if memory is exhausted. */
bool pw_sets_open(struct pw_sets *array, uint32_t sets, uint32_t ways, enum pw_replacement replacement);
void pw_sets_close(struct pw_sets *array);

static inline uint64_t *pw_sets_of(const struct pw_sets *array, uint32_t set)
{
    return array->entries + (uint64_t)set * array->ways;
}

/* The set of a number. */
static inline uint32_t pw_sets_index(const struct pw_sets *array, uint64_t number)
{
    return (uint32_t)(array->mask > 0 ? number & array->mask : number % array->sets);
}

/* Look up the key and mark it if requested; a hit makes it the latest under LRU. False: it is missing. */
static inline bool pw_sets_touch(const struct pw_sets *array, uint32_t set, uint64_t key, bool mark)
{
    uint64_t *entry = pw_sets_of(array, set);
    const uint64_t wanted = key + 1;
    if (entry[0] >> 1 == wanted) {
        entry[0] |= mark;
        return true;
    }
    for (uint32_t i = 1; i < array->ways; i++) {
        if (entry[i] >> 1 != wanted) continue;
        const uint64_t hit = entry[i] | mark;
        if (array->replacement == PW_LRU) {
            /* Most hits are near the front: a call of memmove would take longer than the look-up. */
            for (; i > 0 && i <= 8; i--) {
                entry[i] = entry[i - 1];
                __asm__ volatile(""); /* otherwise compilers make that call of the loop */
            }
            memmove(entry + 1, entry, i * sizeof *entry);
            i = 0;
        }
        entry[i] = hit;
        return true;
    }
    return false;
}

/* Insert a missing key as the latest. */
static inline struct pw_evicted pw_sets_insert(const struct pw_sets *array, uint32_t set, uint64_t key, bool mark)
{
    uint64_t *entry = pw_sets_of(array, set);
    const uint64_t last = entry[array->ways - 1];
    memmove(entry + 1, entry, (array->ways - 1) * sizeof *entry);
    entry[0] = (key + 1) << 1 | mark;
    return (struct pw_evicted){.any = last != 0, .marked = last & 1, .key = (last >> 1) - 1};
}

/* Remove a key, if present; `any` returns whether it was. */
struct pw_evicted pw_sets_remove(const struct pw_sets *array, uint32_t set, uint64_t key);

/* Whether the key is present; changes only its mark. */
bool pw_sets_mark(const struct pw_sets *array, uint32_t set, uint64_t key);

#endif
