/* See origins.h. */
#define _GNU_SOURCE
#include "origins.h"

#include "elf_symbols.h"
#include "origin_calls.h"
#include "origin_map.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Smaller static objects and origins without misses are not listed by themselves. */
enum { smallest_object = 1024, smallest_listed = 1 << 16 };
enum { most_pending = 8, header_bytes = 32 /* of an allocator, around its blocks */ };

/* The misses of an origin, or its samples as those of the first kind. */
enum { tlb, walks, tlb_on_huge, walks_on_huge, faults_on_huge, counts };
static const char *const count_names[counts] = {"L1D_TLB_REFILL", "PAGE_WALKS", "L1D_TLB_REFILL_ON_HUGE", "PAGE_WALKS_ON_HUGE",
                                                "PAGE_FAULTS_ON_HUGE"};
static const char *const pattern_names[PW_PATTERNS] = {"dependent", "independent", "adjacent"};

enum kind { nothing, allocation, object, stack, heap, file, anonymous };
static const char *const kinds[] = {"", "allocation", "static", "stack", "heap", "file", "anonymous"};

struct place {
    const char *module;
    uint64_t offset; /* in memory, from the module's first byte on */
};

struct origin {
    enum kind kind;
    char *name;
    const char *module;
    int n_frames;
    uint64_t frames[PW_ORIGIN_FRAMES];
    struct place *places; /* of the frames */
    uint64_t live, peak, times, first, last; /* bytes now and at most; number of allocations; instructions at begin and end */
    uint64_t faults, count[counts];
    uint64_t distant[PW_PATTERNS][PW_MOST_DISTANCES]; /* accesses by the number of distances that they exceed, less one */
};

struct mapping { /* that can be accessed */
    uint64_t start, end, base; /* base: of the module */
    const char *path;          /* NULL: anonymous */
};

static struct {
    const uint64_t *now;
    const struct pw_model *model;
    struct origin *origin;
    uint32_t n_origins, room;
    uint32_t *by_key; /* origins by the hash of what identifies them */
    uint32_t keys;
    struct mapping *mapping;
    size_t n_mappings;
    bool current, reported;
    char **path;
    size_t n_paths;
    uint64_t *loaded; /* bases of the modules whose static objects are known */
    size_t n_loaded;
    uint64_t stack, break_begin, break_end;
    /* The last misses of memory without a site: an allocator touches memory before it hands it out. */
    struct miss {
        uint64_t address;
        uint32_t origin;
        bool is[counts], fault;
        enum pw_pattern pattern;
        uint32_t distances;
    } pending[most_pending];
    int n_pending;
    /* The last freed memory: its allocator touches it afterwards. */
    uint64_t freed_begin, freed_end;
    uint32_t freed;
} all = {.n_origins = 1 /* 0: none */, .room = 1024, .keys = 2048};

static void account(uint32_t origin, int64_t bytes)
{
    struct origin *of = &all.origin[origin];
    of->live += (uint64_t)bytes;
    if (bytes < 0) of->last = *all.now;
    if (of->live > of->peak) of->peak = of->live;
}

/* A path that lives as long as the program. */
static const char *kept_path(const char *path)
{
    for (size_t i = 0; i < all.n_paths; i++)
        if (strcmp(all.path[i], path) == 0) return all.path[i];
    all.path = pw_need(realloc(all.path, (all.n_paths + 1) * sizeof *all.path));
    return all.path[all.n_paths++] = pw_need(strdup(path));
}

static void read_mappings(void)
{
    char line[PATH_MAX + 256], path[PATH_MAX];
    FILE *maps = fopen("/proc/self/maps", "re");
    all.n_mappings = 0;
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        unsigned long start, end, offset;
        path[0] = '\0';
        if (strstr(line, " ---p") != NULL || sscanf(line, "%lx-%lx %*s %lx %*s %*s %4095[^\n]", &start, &end, &offset, path) < 3) continue;
        all.mapping = pw_need(realloc(all.mapping, (all.n_mappings + 1) * sizeof *all.mapping));
        struct mapping *mapping = &all.mapping[all.n_mappings];
        *mapping = (struct mapping){start, end, start, path[0] == '/' ? kept_path(path) : NULL};
        /* A file that is mapped twice, as by the emulator itself, has a mapping from its first byte on each time. */
        for (size_t i = all.n_mappings; offset > 0 && i-- > 0;) {
            if (all.mapping[i].path != mapping->path) continue;
            mapping->base = all.mapping[i].base;
            break;
        }
        all.n_mappings++;
    }
    if (maps != NULL) fclose(maps);
    all.current = true;
}

static const struct mapping *mapping_at(uint64_t address)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        if (!all.current) read_mappings();
        size_t low = 0, high = all.n_mappings;
        while (low < high) {
            const size_t middle = (low + high) / 2;
            if (all.mapping[middle].end <= address)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < all.n_mappings && all.mapping[low].start <= address) return &all.mapping[low];
        if (attempt == 0) all.current = false;
    }
    return NULL;
}

static bool is_same(const struct origin *a, const struct origin *b)
{
    return a->kind == b->kind && a->module == b->module && a->n_frames == b->n_frames &&
           memcmp(a->frames, b->frames, (size_t)a->n_frames * sizeof *a->frames) == 0 &&
           (a->name == b->name || (a->name != NULL && b->name != NULL && strcmp(a->name, b->name) == 0));
}

/* Where an origin of this description is, or would be, in `by_key`. */
static uint32_t slot_of(const struct origin *origin)
{
    uint64_t key = pw_mixed(origin->kind) ^ (uintptr_t)origin->module;
    for (const char *name = origin->name; name != NULL && *name != '\0'; name++) key = pw_mixed(key ^ (uint64_t)(unsigned char)*name);
    for (int i = 0; i < origin->n_frames; i++) key = pw_mixed(key ^ origin->frames[i]);
    uint32_t slot = (uint32_t)key & (all.keys - 1);
    while (all.by_key[slot] != 0 && !is_same(&all.origin[all.by_key[slot]], origin)) slot = (slot + 1) & (all.keys - 1);
    return slot;
}

/* The origin of this description, which is made where it is new. */
static uint32_t origin_of(struct origin description)
{
    if (all.n_origins == all.room) {
        all.room *= 2;
        all.origin = pw_need(realloc(all.origin, all.room * sizeof *all.origin));
        all.keys = 2 * all.room;
        free(all.by_key);
        all.by_key = pw_need(calloc(all.keys, sizeof *all.by_key));
        for (uint32_t i = 1; i < all.n_origins; i++) all.by_key[slot_of(&all.origin[i])] = i;
    }
    const uint32_t slot = slot_of(&description);
    if (all.by_key[slot] != 0) return all.by_key[slot];
    if (description.name != NULL) description.name = pw_need(strdup(description.name));
    if (description.n_frames > 0) description.places = pw_need(calloc((size_t)description.n_frames, sizeof *description.places));
    for (int i = 0; i < description.n_frames; i++) {
        const struct mapping *mapping = mapping_at(description.frames[i]);
        if (mapping != NULL && mapping->path != NULL)
            description.places[i] = (struct place){mapping->path, description.frames[i] - mapping->base};
    }
    description.first = *all.now;
    all.origin[all.n_origins] = description;
    return all.by_key[slot] = all.n_origins++;
}

static void name_object(void *module, const char *name, uint64_t start, uint64_t bytes)
{
    if (bytes < smallest_object) return;
    pw_map_assign(start, bytes, origin_of((struct origin){.kind = object, .module = module, .name = (char *)name}), false);
}

static void name_segment(void *module, const char *name, uint64_t start, uint64_t bytes)
{
    (void)name;
    pw_map_assign(start, bytes, origin_of((struct origin){.kind = file, .module = module}), true);
}

/* The file at `base` is mapped: its memory, and its static objects. */
static void load(const char *path, uint64_t base)
{
    for (size_t i = 0; i < all.n_loaded; i++)
        if (all.loaded[i] == base) return;
    all.loaded = pw_need(realloc(all.loaded, (all.n_loaded + 1) * sizeof *all.loaded));
    all.loaded[all.n_loaded++] = base;
    pw_elf_each(path, base, name_segment, name_object, (void *)path);
}

/* The origin of memory that no site has reported. */
static uint32_t resolve(uint64_t address)
{
    const struct mapping *mapping = mapping_at(address);
    struct origin description = {.kind = anonymous};
    if (mapping != NULL && mapping->path == NULL) {
        /* Memory after a file's, such as .bss: of the last file before it. */
        const struct mapping *before = mapping;
        while (before > all.mapping && before->path == NULL && before[-1].end == before->start) before--;
        if (before->path != NULL) load(before->path, before->base);
        pw_map_open_reserved(address, mapping->start, mapping->end);
    } else if (mapping != NULL) {
        load(mapping->path, mapping->base);
        description = (struct origin){.kind = file, .module = mapping->path};
    }
    const uint32_t known = pw_map_at(address);
    if (known != 0) return known;
    if (mapping != NULL && mapping->start <= all.stack && all.stack < mapping->end) description.kind = stack;
    if (all.break_begin <= address && address < all.break_end) description.kind = heap;
    const uint32_t origin = origin_of(description);
    pw_map_assign(address >> PW_MAP_PAGE_SHIFT << PW_MAP_PAGE_SHIFT, UINT64_C(1) << PW_MAP_PAGE_SHIFT, origin, true);
    return origin;
}

void pw_origins_open(const uint64_t *now, const struct pw_model *model)
{
    all.now = now;
    all.model = model;
    pw_map_open(account);
    all.origin = pw_need(calloc(all.room, sizeof *all.origin));
    all.by_key = pw_need(calloc(all.keys, sizeof *all.by_key));
}

void pw_origins_stack(uint64_t address)
{
    all.stack = address;
}

void pw_origins_thread(uint64_t stack_begin, uint64_t bytes)
{
    pw_map_assign(stack_begin, bytes, origin_of((struct origin){.kind = stack}), false);
}

void pw_origins_reported(void)
{
    all.reported = true;
}

/* Count a miss `times` times, which may be negative. */
static void count(uint32_t number, int times, struct miss miss)
{
    struct origin *origin = &all.origin[number];
    for (int i = 0; i < counts; i++) origin->count[i] += miss.is[i] ? (uint64_t)times : 0;
    origin->faults += miss.fault ? (uint64_t)times : 0;
    if (miss.distances > 0 && !miss.fault) origin->distant[miss.pattern][miss.distances - 1] += (uint64_t)times;
}

bool pw_origins_missed(uint64_t address, uint32_t missed, enum pw_pattern pattern, uint64_t page)
{
    uint32_t number = pw_map_at(address);
    if (number == 0 && all.model == NULL && mapping_at(address) == NULL) return false;
    if (number == 0) number = resolve(address);
    const bool ownerless = all.origin[number].kind == heap || all.origin[number].kind == anonymous;
    if (ownerless && all.freed_end > 0 && all.freed_begin <= address + header_bytes &&
        address < all.freed_end + header_bytes)
        number = all.freed;
    const bool miss_of_base = (missed & PW_MISSED_TLB) != 0, walk = (missed & PW_MISSED_ALL_TLBS) != 0;
    const bool first = pw_map_is_untouched(address), fault = walk && !pw_map_touch(address & ~(page - 1), true);
    const struct miss miss = {.address = address,
                              .origin = number,
                              .is = {miss_of_base, walk, (missed & PW_MISSED_TLB_ON_HUGE) != 0,
                                     (missed & PW_MISSED_ALL_TLBS_ON_HUGE) != 0, fault && first},
                              .fault = fault,
                              .pattern = pattern,
                              .distances = missed >> PW_DISTANCE_SHIFT};
    count(number, 1, miss);
    if (ownerless) all.pending[all.n_pending++ % most_pending] = miss;
    return true;
}

void pw_origins_reset(void)
{
    for (uint32_t i = 1; i < all.n_origins; i++) all.origin[i].count[tlb] = 0;
    all.n_pending = 0;
}

void pw_origins_begin(uint64_t address, uint64_t bytes, const uint64_t *frames, int n_frames, bool accessible)
{
    struct origin description = {.kind = allocation, .n_frames = n_frames};
    memcpy(description.frames, frames, (size_t)n_frames * sizeof *frames);
    const uint32_t origin = origin_of(description);
    all.origin[origin].times++;
    if (!accessible) {
        pw_origins_discarded(address, bytes, true);
        pw_map_reserve(address, bytes, origin);
        return;
    }
    all.freed_end = 0;
    pw_map_assign(address, bytes, origin, false);
    for (int i = 0; i < all.n_pending && i < most_pending; i++) {
        const struct miss *miss = &all.pending[i];
        if (miss->address + header_bytes < address || miss->address >= address + bytes + header_bytes) continue;
        count(miss->origin, -1, *miss);
        count(origin, 1, *miss);
    }
    all.n_pending = 0;
}

void pw_origins_end(uint64_t address, uint64_t bytes)
{
    all.freed = pw_map_at(address);
    all.freed_begin = address;
    all.freed_end = all.freed != 0 ? address + bytes : 0;
    pw_map_assign(address, bytes, 0, false);
    all.n_pending = 0;
}

void pw_origins_mapped(uint64_t address, uint64_t bytes)
{
    char size[32];
    snprintf(size, sizeof size, "%" PRIu64, bytes);
    all.current = false;
    if (all.reported) return;
    const uint32_t origin = origin_of((struct origin){.kind = anonymous, .name = size});
    all.origin[origin].times++;
    pw_map_assign(address, bytes, origin, false);
}

void pw_origins_discarded(uint64_t address, uint64_t bytes, bool unmapped)
{
    pw_map_untouch(address, bytes);
    if (!unmapped) return;
    pw_map_assign(address, bytes, 0, false);
    pw_map_reserve(address, bytes, 0);
    all.current = false;
}

void pw_origins_moved(uint64_t from, uint64_t old_bytes, uint64_t to, uint64_t bytes)
{
    const uint32_t origin = pw_map_at(from);
    const uint64_t common = old_bytes < bytes ? old_bytes : bytes;
    for (uint64_t i = 0; from != to && i < common; i += UINT64_C(1) << PW_MAP_PAGE_SHIFT)
        if (pw_map_touch(from + i, false)) pw_map_touch(to + i, true);
    pw_map_assign(from, old_bytes, 0, false);
    if (origin != 0) pw_map_assign(to, bytes, origin, false);
    all.current = false;
}

void pw_origins_break(uint64_t end)
{
    if (all.break_begin == 0) all.break_begin = end;
    all.break_end = end;
    all.current = false;
}

void pw_origins_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; text != NULL && *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        fputc((unsigned char)*text < ' ' || (unsigned char)*text >= 0x7f ? '?' : *text, out);
    }
    fputc('"', out);
}

void pw_origins_write(FILE *out)
{
    const uint32_t distances = all.model != NULL ? all.model->geometry.n_distances : 0;
    const int written = all.model == NULL ? 1 : all.model->tlb_on_huge.n_levels > 0 ? counts : tlb_on_huge;
    const char *separator = "[";
    for (uint32_t i = 1; i < all.n_origins; i++) {
        const struct origin *origin = &all.origin[i];
        if (origin->count[tlb] == 0 && (origin->peak < smallest_listed || origin->kind != allocation)) continue;
        fprintf(out, "%s{\"kind\":\"%s\",\"name\":", separator, kinds[origin->kind]);
        pw_origins_text(out, origin->name);
        fputs(",\"module\":", out);
        pw_origins_text(out, origin->module);
        fputs(",\"frames\":[", out);
        for (int k = 0; k < origin->n_frames; k++) {
            fprintf(out, "%s{\"module\":", k > 0 ? "," : "");
            pw_origins_text(out, origin->places[k].module);
            fprintf(out, ",\"offset\":%" PRIu64 "}", origin->places[k].offset);
        }
        fprintf(out, "],\"bytes\":%" PRIu64 ",\"allocations\":%" PRIu64 ",\"begin\":%" PRIu64 ",\"end\":%" PRIu64
                     ",\"page_faults\":%" PRIu64 ",\"counts\":{",
                origin->peak, origin->times, origin->first, origin->live > 0 ? *all.now : origin->last, origin->faults);
        for (int k = 0; k < written; k++)
            fprintf(out, "%s\"%s\":%" PRIu64, k > 0 ? "," : "", all.model != NULL ? count_names[k] : "SAMPLES", origin->count[k]);
        fputs("},\"distant\":{", out);
        for (int p = 0; p < PW_PATTERNS; p++) {
            fprintf(out, "%s\"%s\":[", p > 0 ? "," : "", pattern_names[p]);
            for (uint32_t k = 0; k < distances; k++) fprintf(out, "%s%" PRIu64, k > 0 ? "," : "", origin->distant[p][k]);
            fputs("]", out);
        }
        fputs("}}", out);
        separator = ",";
    }
    fputs(separator[0] == '[' ? "[]" : "]", out);
}
