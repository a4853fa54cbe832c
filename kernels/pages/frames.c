/* Documentation/admin-guide/mm/pagemap.rst: pagemap gives the frame of a page, kpageflags the flags of a frame. A large
   page is a head frame followed by its tail frames, aligned to its size. */
#define _GNU_SOURCE
#include "frames.h"
#include "system.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint64_t present = UINT64_C(1) << 63;        /* of an entry of pagemap, */
static const uint64_t frame_mask = (UINT64_C(1) << 55) - 1; /* and the frame's number in it */
static const uint64_t head = 1U << 15, tail = 1U << 16;   /* KPF_COMPOUND_HEAD, KPF_COMPOUND_TAIL */

/* The flags of an aligned stretch of frames that is as long as the largest page, so that a page is never cut; and the last
   page found. */
struct window {
    int file;
    uint64_t first, count;
    uint64_t *flags;
    uint64_t page, page_frames;
};

static bool inspect(struct window *window, uint64_t frame)
{
    uint64_t first = frame / window->count * window->count;
    if (window->first == first) return true;
    size_t bytes = window->count * sizeof *window->flags;
    memset(window->flags, 0, bytes);
    window->first = first;
    ssize_t read = pread(window->file, window->flags, bytes, (off_t)(first * sizeof *window->flags));
    return read > (ssize_t)((frame - first) * sizeof *window->flags);
}

/* Find the page that holds `frame`: its first frame and its number of frames, 1 for a base page. False: not permitted. */
static bool find_page(struct window *window, uint64_t frame)
{
    if (frame - window->page < window->page_frames) return true;
    if (!inspect(window, frame)) return false;
    uint64_t at = frame - window->first, end = at + 1;
    window->page = frame;
    window->page_frames = 1;
    while (at > 0 && (window->flags[at] & tail) != 0) at--;
    if ((window->flags[at] & head) == 0) return true;
    while (end < window->count && (window->flags[end] & tail) != 0) end++;
    window->page = window->first + at;
    window->page_frames = end - at;
    return true;
}

/* One page of the requested size, described by the pagemap entries of its base pages. False: reading the flags is not
   permitted. */
static bool count_page(const uint64_t *entries, uint64_t count, struct window *window, struct pw_frames *frames)
{
    int64_t base = pw_system_base_page_size();
    uint64_t in_place = 0;
    for (uint64_t i = 0; i < count; i++) {
        if ((entries[i] & present) == 0) continue;
        uint64_t frame = entries[i] & frame_mask;
        if (frame == 0 || !find_page(window, frame)) return false;
        bool same = window->page == (entries[0] & frame_mask);
        if (window->page_frames == count && same && frame == window->page + i) in_place++;
        int order = 63 - __builtin_clzll(window->page_frames);
        if (order < PW_FRAMES_ORDERS) frames->by_order[order] += base;
    }
    if (in_place == count) frames->whole_bytes += (int64_t)count * base;
    return true;
}

bool pw_frames_count(uintptr_t start, uintptr_t end, int64_t page_size, int64_t largest, struct pw_frames *frames)
{
    int64_t base = pw_system_base_page_size();
    uint64_t count = (uint64_t)(page_size / base);
    struct window window = {.first = UINT64_MAX, .count = (uint64_t)(largest / base)};
    *frames = (struct pw_frames){0};
    int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    window.file = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
    window.flags = calloc(window.count, sizeof *window.flags);
    uint64_t *entries = calloc(count, sizeof *entries);
    bool counted = map >= 0 && window.file >= 0 && window.flags != NULL && entries != NULL;
    for (uintptr_t at = start; counted && at < end; at += (uintptr_t)page_size) {
        size_t bytes = count * sizeof *entries;
        counted = pread(map, entries, bytes, (off_t)(at / (uintptr_t)base * sizeof *entries)) == (ssize_t)bytes &&
                  count_page(entries, count, &window, frames);
    }
    free(entries);
    free(window.flags);
    if (window.file >= 0) close(window.file);
    if (map >= 0) close(map);
    return counted;
}
