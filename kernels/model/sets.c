/* See sets.h. */
#include "sets.h"

#include <stdlib.h>

bool pw_sets_open(struct pw_sets *array, uint32_t sets, uint32_t ways, enum pw_replacement replacement)
{
    *array = (struct pw_sets){
        .sets = sets, .ways = ways, .replacement = replacement, .mask = (sets & (sets - 1)) == 0 ? sets - 1 : 0};
    array->entries = calloc((size_t)sets * ways, sizeof *array->entries);
    return array->entries != NULL;
}

void pw_sets_close(struct pw_sets *array)
{
    free(array->entries);
    array->entries = NULL;
}

struct pw_evicted pw_sets_remove(const struct pw_sets *array, uint32_t set, uint64_t key)
{
    uint64_t *entry = pw_sets_of(array, set);
    for (uint32_t i = 0; i < array->ways; i++) {
        if (entry[i] >> 1 != key + 1) continue;
        const struct pw_evicted evicted = {.any = true, .marked = entry[i] & 1, .key = key};
        memmove(entry + i, entry + i + 1, (array->ways - 1 - i) * sizeof *entry);
        entry[array->ways - 1] = 0;
        return evicted;
    }
    return (struct pw_evicted){.any = false};
}

bool pw_sets_mark(const struct pw_sets *array, uint32_t set, uint64_t key)
{
    uint64_t *entry = pw_sets_of(array, set);
    for (uint32_t i = 0; i < array->ways; i++) {
        if (entry[i] >> 1 != key + 1) continue;
        entry[i] |= 1;
        return true;
    }
    return false;
}
