/* See origin_map.h. */
#define _GNU_SOURCE
#include "origin_map.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { exit_of_tool = 125 /* that of env and timeout for their own failures */ };
enum { granule_shift = 4, extent_shift = 21 };
enum { granules = 1 << (extent_shift - granule_shift), pages = 1 << (extent_shift - PW_MAP_PAGE_SHIFT) };

struct extent {
    uint64_t number; /* its address divided by its size, plus one; 0: unused */
    uint32_t whole;  /* the origin of all of it, if `part` is NULL */
    uint32_t *part;
    uint64_t touched[pages / 64]; /* pages that were accessed */
};

static struct {
    struct extent *extent; /* a hash table */
    uint64_t extents, used;
    struct reserved {
        uint64_t start, end;
        uint32_t origin;
    } *reserved;
    size_t n_reserved;
    void (*account)(uint32_t origin, int64_t bytes);
} all;

void pw_map_open(void (*account)(uint32_t origin, int64_t bytes))
{
    all.account = account;
}

void stop(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("pagewise model: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    syscall(SYS_exit_group, exit_of_tool);
    __builtin_unreachable();
}

void *pw_need(void *memory)
{
    if (memory == NULL) stop("out of memory");
    return memory;
}

uint64_t pw_mixed(uint64_t value)
{
    value *= UINT64_C(0x9e3779b97f4a7c15);
    return value ^ value >> 29;
}

/* The extent of an address; where it is unknown, NULL or a new one. */
static struct extent *extent_of(uint64_t address, bool make)
{
    if (make && 2 * all.used >= all.extents) {
        const uint64_t before = all.extents;
        struct extent *old = all.extent;
        all.extents = before == 0 ? 1024 : 2 * before;
        all.extent = pw_need(calloc(all.extents, sizeof *all.extent));
        for (uint64_t i = 0; i < before; i++) {
            if (old[i].number == 0) continue;
            uint64_t slot = pw_mixed(old[i].number) & (all.extents - 1);
            while (all.extent[slot].number != 0) slot = (slot + 1) & (all.extents - 1);
            all.extent[slot] = old[i];
        }
        free(old);
    }
    if (all.extents == 0) return NULL;
    const uint64_t number = (address >> extent_shift) + 1;
    uint64_t slot = pw_mixed(number) & (all.extents - 1);
    while (all.extent[slot].number != 0 && all.extent[slot].number != number) slot = (slot + 1) & (all.extents - 1);
    if (all.extent[slot].number == number) return &all.extent[slot];
    if (!make) return NULL;
    all.used++;
    all.extent[slot].number = number;
    return &all.extent[slot];
}

/* Memory within one extent is of this origin from now on; `only_free`: unless it has one. */
static void assign_within(struct extent *extent, uint64_t from, uint64_t to, uint32_t origin, bool only_free)
{
    const uint64_t mask = granules - 1;
    const uint64_t first = from >> granule_shift & mask, last = (to - 1) >> granule_shift & mask;
    if (extent->part == NULL && (extent->whole == origin || (only_free && extent->whole != 0))) return;
    if (extent->part == NULL && first == 0 && last == mask) {
        all.account(extent->whole, -(INT64_C(1) << extent_shift));
        all.account(origin, INT64_C(1) << extent_shift);
        extent->whole = origin;
        return;
    }
    if (extent->part == NULL) {
        extent->part = pw_need(malloc(granules * sizeof *extent->part));
        for (int i = 0; i < granules; i++) extent->part[i] = extent->whole;
    }
    for (uint64_t i = first; i <= last;) {
        const uint32_t before = extent->part[i];
        int64_t bytes = 0;
        const bool kept = only_free && before != 0;
        for (; i <= last && extent->part[i] == before; i++, bytes += 1 << granule_shift)
            if (!kept) extent->part[i] = origin;
        if (kept) continue;
        all.account(before, -bytes);
        all.account(origin, bytes);
    }
    if (first == 0 && last == mask && !only_free) {
        free(extent->part);
        extent->part = NULL;
        extent->whole = origin;
    }
}

void pw_map_assign(uint64_t address, uint64_t bytes, uint32_t origin, bool only_free)
{
    const uint64_t end = address + bytes;
    for (uint64_t next; address < end; address = next) {
        next = ((address >> extent_shift) + 1) << extent_shift;
        if (next > end) next = end;
        struct extent *extent = extent_of(address, origin != 0);
        if (extent != NULL) assign_within(extent, address, next, origin, only_free);
    }
}

static void reserve(uint64_t start, uint64_t end, uint32_t origin)
{
    if (start >= end) return;
    all.reserved = pw_need(realloc(all.reserved, (all.n_reserved + 1) * sizeof *all.reserved));
    all.reserved[all.n_reserved++] = (struct reserved){start, end, origin};
}

void pw_map_reserve(uint64_t address, uint64_t bytes, uint32_t origin)
{
    const uint64_t end = address + bytes;
    for (size_t i = all.n_reserved; i-- > 0;) {
        const struct reserved before = all.reserved[i];
        if (end <= before.start || before.end <= address) continue;
        all.reserved[i] = all.reserved[--all.n_reserved];
        reserve(before.start, address, before.origin);
        reserve(end, before.end, before.origin);
    }
    if (origin != 0) reserve(address, end, origin);
}

void pw_map_open_reserved(uint64_t address, uint64_t start, uint64_t end)
{
    for (size_t i = 0; i < all.n_reserved; i++) {
        const struct reserved *in = &all.reserved[i];
        if (address < in->start || in->end <= address) continue;
        if (start < in->start) start = in->start;
        pw_map_assign(start, (in->end < end ? in->end : end) - start, in->origin, true);
    }
}

uint32_t pw_map_at(uint64_t address)
{
    const struct extent *extent = extent_of(address, false);
    if (extent == NULL) return 0;
    return extent->part == NULL ? extent->whole : extent->part[address >> granule_shift & (granules - 1)];
}

bool pw_map_touch(uint64_t address, bool touched)
{
    struct extent *extent = extent_of(address, touched);
    if (extent == NULL) return false;
    const uint64_t page = address >> PW_MAP_PAGE_SHIFT & (pages - 1), bit = UINT64_C(1) << page % 64;
    const bool before = (extent->touched[page / 64] & bit) != 0;
    if (touched)
        extent->touched[page / 64] |= bit;
    else
        extent->touched[page / 64] &= ~bit;
    return before;
}

bool pw_map_is_untouched(uint64_t address)
{
    const struct extent *extent = extent_of(address, false);
    for (int i = 0; extent != NULL && i < pages / 64; i++)
        if (extent->touched[i] != 0) return false;
    return true;
}

void pw_map_untouch(uint64_t address, uint64_t bytes)
{
    for (uint64_t page = address; page < address + bytes;) {
        if (extent_of(page, false) == NULL) {
            page = ((page >> extent_shift) + 1) << extent_shift;
            continue;
        }
        pw_map_touch(page, false);
        page += UINT64_C(1) << PW_MAP_PAGE_SHIFT;
    }
}
