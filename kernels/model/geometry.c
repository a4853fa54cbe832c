/* See geometry.h. */
#include "geometry.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { most_words = 8, word_length = 63 };
/* Limits far above any machine's, so that products do not overflow. */
enum { most_entries = 1 << 20, most_lines = 1 << 26, least_line = 8, address_bits = 64, most_hash_bits = 32 };
static const uint64_t most_value = UINT64_C(1) << 40;

struct reader {
    int line;
    char *fault;
};

__attribute__((format(printf, 2, 3))) static bool fail(struct reader *reader, const char *format, ...)
{
    const int used = reader->line > 0 ? snprintf(reader->fault, PW_GEOMETRY_TEXT + 1, "line %d: ", reader->line) : 0;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reader->fault + used, (size_t)(PW_GEOMETRY_TEXT + 1 - used), format, arguments);
    va_end(arguments);
    return false;
}

static bool is_power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

/* Unsigned numbers from words; false if one is not a number, or beyond 2^40. */
static bool numbers(struct reader *reader, char words[][word_length + 1], int count, uint64_t *values)
{
    for (int i = 0; i < count; i++) {
        int used = 0;
        if (sscanf(words[i], "%" SCNu64 "%n", &values[i], &used) != 1 || words[i][used] != '\0' || words[i][0] == '-' ||
            values[i] > most_value)
            return fail(reader, "'%s' is not a number", words[i]);
    }
    return true;
}

/* The index of `word` in `names`; -1 if it is not among them. */
static int choice(const char *word, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(word, names[i]) == 0) return i;
    return -1;
}

static bool read_pages(struct reader *reader, char words[][word_length + 1], struct pw_geometry *geometry)
{
    if (!numbers(reader, words, PW_PAGE_CLASSES, geometry->page)) return false;
    if (!is_power_of_two(geometry->page[PW_BASE]) || !is_power_of_two(geometry->page[PW_HUGE]))
        return fail(reader, "a page size must be a power of two");
    if (geometry->page[PW_BASE] >= geometry->page[PW_HUGE]) return fail(reader, "huge pages must be larger than base pages");
    geometry->entry = geometry->page[PW_HUGE];
    if (words[PW_PAGE_CLASSES][0] == '\0') return true;
    if (!numbers(reader, words + PW_PAGE_CLASSES, 1, &geometry->entry)) return false;
    if (!is_power_of_two(geometry->entry) || geometry->entry < geometry->page[PW_BASE] || geometry->entry > geometry->page[PW_HUGE])
        return fail(reader, "an entry translates a power of two of bytes, from a base page to a huge page");
    return true;
}

static bool read_tlb(struct reader *reader, char words[][word_length + 1], struct pw_geometry *geometry)
{
    static const char *const replacements[] = {"lru", "fifo"}, *const classes[] = {"base", "huge", "both"};
    uint64_t value[3];
    if (!numbers(reader, words, 3, value)) return false;
    const int replacement = choice(words[3], replacements, 2), held = choice(words[4], classes, 3);
    if (replacement < 0) return fail(reader, "'%s' must be lru or fifo", words[3]);
    if (held < 0) return fail(reader, "'%s' must be base, huge or both", words[4]);
    if (value[0] < 1 || value[0] > PW_MOST_LEVELS) return fail(reader, "TLBs have levels 1 to %d", PW_MOST_LEVELS);
    if (value[2] == 0 || value[1] == 0 || value[1] % value[2] != 0 || value[1] > most_entries)
        return fail(reader, "the entries must be a multiple of the ways");
    const uint32_t level = (uint32_t)value[0] - 1;
    const bool holds[PW_PAGE_CLASSES] = {held != 1, held != 0};
    for (uint32_t i = 0; i < geometry->n_tlbs[level]; i++)
        for (int c = 0; c < PW_PAGE_CLASSES; c++)
            if (holds[c] && geometry->tlb[level][i].holds[c])
                return fail(reader, "level %u has two TLBs for %s pages", level + 1, classes[c]);
    struct pw_tlb_geometry *tlb = &geometry->tlb[level][geometry->n_tlbs[level]++];
    tlb->entries = (uint32_t)value[1];
    tlb->ways = (uint32_t)value[2];
    tlb->replacement = (enum pw_replacement)replacement;
    memcpy(tlb->holds, holds, sizeof holds);
    if (geometry->n_tlb_levels <= level) geometry->n_tlb_levels = level + 1;
    return true;
}

static bool read_distance(struct reader *reader, char words[][word_length + 1], struct pw_geometry *geometry)
{
    uint64_t pages;
    if (!numbers(reader, words, 1, &pages)) return false;
    if (geometry->n_distances == PW_MOST_DISTANCES) return fail(reader, "more than %d distances", PW_MOST_DISTANCES);
    if (!is_power_of_two(pages) || pages < PW_DISTANCE_WAYS || pages > most_entries)
        return fail(reader, "a distance must be a power of two, at least %d", PW_DISTANCE_WAYS);
    if (geometry->n_distances > 0 && pages <= geometry->distance[geometry->n_distances - 1])
        return fail(reader, "distances must ascend");
    geometry->distance[geometry->n_distances++] = (uint32_t)pages;
    return true;
}

static bool read_cache(struct reader *reader, char words[][word_length + 1], struct pw_geometry *geometry)
{
    static const char *const inclusions[] = {"none", "inclusive", "victim"};
    uint64_t value[4];
    if (!numbers(reader, words, 4, value)) return false;
    const int inclusion = choice(words[4], inclusions, 3);
    if (inclusion < 0) return fail(reader, "'%s' must be none, inclusive or victim", words[4]);
    if (value[0] != geometry->n_cache_levels + 1 || value[0] > PW_MOST_LEVELS)
        return fail(reader, "caches have levels 1 to %d, in this order", PW_MOST_LEVELS);
    if (value[0] == 1 && inclusion != PW_NONE) return fail(reader, "the first cache must be 'none'");
    if (!is_power_of_two(value[3]) || value[3] < least_line)
        return fail(reader, "the line size must be a power of two, at least %d", least_line);
    if (geometry->line != 0 && value[3] != geometry->line) return fail(reader, "all caches must have the same line size");
    if (value[2] == 0 || value[1] == 0 || value[1] % (value[2] * value[3]) != 0 || value[1] / value[3] > most_lines)
        return fail(reader, "the bytes must be a multiple of ways x line");
    struct pw_cache_geometry *cache = &geometry->cache[geometry->n_cache_levels++];
    geometry->line = value[3];
    cache->bytes = value[1];
    cache->ways = (uint32_t)value[2];
    cache->inclusion = (enum pw_inclusion)inclusion;
    return true;
}

static bool read_hash(struct reader *reader, char words[][word_length + 1], struct pw_geometry *geometry)
{
    uint64_t value[4];
    if (!numbers(reader, words, 4, value)) return false;
    if (value[0] < 1 || value[0] > geometry->n_cache_levels) return fail(reader, "the cache level does not exist");
    struct pw_cache_geometry *cache = &geometry->cache[value[0] - 1];
    if (cache->n_hashes == PW_MOST_HASHES) return fail(reader, "more than %d hash lines", PW_MOST_HASHES);
    if (!is_power_of_two(cache->bytes / cache->ways / geometry->line))
        return fail(reader, "a hash needs a power of two of sets");
    if (value[2] < 1 || value[1] + value[2] > address_bits || value[3] > most_hash_bits)
        return fail(reader, "the bits are outside of an address");
    cache->hash[cache->n_hashes++] = (struct pw_hash_geometry){(uint32_t)value[1], (uint32_t)value[2], (uint32_t)value[3]};
    return true;
}

static bool read_sector(struct reader *reader, char words[][word_length + 1], struct pw_geometry *geometry)
{
    uint64_t value[3];
    if (!numbers(reader, words, 3, value)) return false;
    if (value[0] < 1 || value[0] > geometry->n_cache_levels) return fail(reader, "the cache level does not exist");
    if (value[1] < 1 || value[1] >= PW_SECTORS) return fail(reader, "sectors are numbered 1 to %d", PW_SECTORS - 1);
    struct pw_cache_geometry *cache = &geometry->cache[value[0] - 1];
    if (!cache->has_sectors) cache->sector_ways[0] = cache->ways;
    cache->has_sectors = true;
    if (cache->sector_ways[value[1]] != 0) return fail(reader, "sector %d is given twice", (int)value[1]);
    if (value[2] < 1 || value[2] >= cache->sector_ways[0]) return fail(reader, "each sector, 0 included, needs a way");
    cache->sector_ways[value[1]] = (uint32_t)value[2];
    cache->sector_ways[0] -= (uint32_t)value[2];
    return true;
}

static bool read_array(struct reader *reader, char words[][word_length + 1], struct pw_geometry *geometry)
{
    uint64_t sector;
    if (!numbers(reader, words + 1, 1, &sector)) return false;
    if (sector < 1 || sector >= PW_SECTORS) return fail(reader, "sectors are numbered 1 to %d", PW_SECTORS - 1);
    if (geometry->n_arrays == PW_MOST_ARRAYS) return fail(reader, "more than %d arrays", PW_MOST_ARRAYS);
    struct pw_sector_array *array = &geometry->array[geometry->n_arrays++];
    snprintf(array->name, sizeof array->name, "%s", words[0]);
    array->sector = (uint32_t)sector;
    return true;
}

static bool read_name(struct reader *reader, char words[][word_length + 1], struct pw_geometry *geometry)
{
    (void)reader;
    snprintf(geometry->name, sizeof geometry->name, "%s", words[0]);
    return true;
}

static bool check(struct reader *reader, const struct pw_geometry *geometry)
{
    reader->line = 0;
    if (geometry->name[0] == '\0') return fail(reader, "the 'geometry' line is missing");
    if (geometry->page[PW_BASE] == 0) return fail(reader, "the 'pages' line is missing");
    if (geometry->n_tlb_levels == 0) return fail(reader, "no TLB is given");
    for (uint32_t level = 0; level < geometry->n_tlb_levels; level++)
        if (geometry->n_tlbs[level] == 0) return fail(reader, "TLB level %u is missing", level + 1);
    if (geometry->line > geometry->page[PW_BASE]) return fail(reader, "the line is longer than a page");
    return true;
}

bool pw_geometry_read(const char *text, struct pw_geometry *geometry, char *fault)
{
    static const struct {
        const char *word;
        int arguments, optional;
        bool (*read)(struct reader *, char[][word_length + 1], struct pw_geometry *);
    } kinds[] = {{"geometry", 1, 0, read_name}, {"pages", 2, 1, read_pages}, {"tlb", 5, 0, read_tlb},      {"cache", 5, 0, read_cache},
                 {"hash", 4, 0, read_hash},     {"sector", 3, 0, read_sector}, {"array", 2, 0, read_array},
                 {"distance", 1, 0, read_distance}};
    enum { n_kinds = sizeof kinds / sizeof kinds[0] };
    struct reader reader = {.fault = fault};
    *geometry = (struct pw_geometry){.line = 0};
    while (*text != '\0') {
        char words[most_words][word_length + 1];
        int count = 0;
        reader.line++;
        while (*(text += strspn(text, " \t\r")) != '\n' && *text != '\0') {
            const size_t length = strcspn(text, " \t\r\n");
            if (count == most_words || length > word_length) return fail(&reader, "too many or too long words");
            memcpy(words[count], text, length);
            words[count++][length] = '\0';
            text += length;
        }
        text += *text == '\n';
        if (count == 0) continue;
        int kind = n_kinds - 1;
        while (kind >= 0 && strcmp(words[0], kinds[kind].word) != 0) kind--;
        if (kind < 0) return fail(&reader, "unknown keyword '%s'", words[0]);
        if (count - 1 < kinds[kind].arguments || count - 1 > kinds[kind].arguments + kinds[kind].optional)
            return fail(&reader, "'%s' takes %d values, not %d", words[0], kinds[kind].arguments, count - 1);
        if (count < most_words) words[count][0] = '\0';
        if (!kinds[kind].read(&reader, words + 1, geometry)) return false;
    }
    if (geometry->n_cache_levels == 0) geometry->line = geometry->page[PW_BASE];
    return check(&reader, geometry);
}

bool pw_geometry_read_file(const char *name, struct pw_geometry *geometry, char *fault)
{
    char text[1 << 14]; /* a geometry has some hundred bytes */
    FILE *file = fopen(name, "re");
    struct reader reader = {.fault = fault};
    if (file == NULL) return fail(&reader, "cannot be read");
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return pw_geometry_read(text, geometry, fault);
}
