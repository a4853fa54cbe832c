/* See mapping.h. */
#define _GNU_SOURCE
#include "mapping.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const uint64_t extent_bytes = UINT64_C(1) << PW_EXTENT_SHIFT;

/* The interface of PAGEMAP_SCAN: Linux 6.7, Documentation/admin-guide/mm/pagemap.rst; older headers lack it. */
struct scan {
    uint64_t size, flags, start, end, walk_end, ranges, n_ranges, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
struct scan_range {
    uint64_t start, end, categories;
};
static const uint64_t category_huge = 1 << 6;
#define SCAN_PAGEMAP _IOWR('f', 16, struct scan)

/* The share of `start` .. `end` that is on huge pages, in bytes; -1 if the kernel cannot tell. */
static int64_t scan_huge(int pagemap, uint64_t start, uint64_t end)
{
    struct scan_range range = {.start = 0};
    struct scan scan = {.size = sizeof scan,
                        .start = start,
                        .end = end,
                        .ranges = (uint64_t)(uintptr_t)&range,
                        .n_ranges = 1,
                        .category_mask = category_huge,
                        .return_mask = category_huge};
    const int found = ioctl(pagemap, SCAN_PAGEMAP, &scan);
    if (found < 0) return -1;
    return found == 0 ? 0 : (int64_t)(range.end - range.start);
}

void pw_mapping_forget(struct pw_mapping *mapping)
{
    memset(mapping->slot, 0, sizeof mapping->slot);
}

void pw_observer_open(struct pw_observer *observer)
{
    *observer = (struct pw_observer){.pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)};
    if (observer->pagemap >= 0 && scan_huge(observer->pagemap, 0, extent_bytes) < 0) pw_observer_close(observer);
}

void pw_observer_close(struct pw_observer *observer)
{
    if (observer->pagemap >= 0) close(observer->pagemap);
    observer->pagemap = -1;
}

bool pw_observer_is_huge(void *context, uint64_t start)
{
    struct pw_observer *observer = context;
    if (observer->pagemap >= 0) return scan_huge(observer->pagemap, start, start + extent_bytes) == (int64_t)extent_bytes;
    FILE *smaps = fopen("/proc/self/smaps", "re");
    if (smaps == NULL) return false;
    const int answer = pw_smaps_is_huge(smaps, start);
    fclose(smaps);
    observer->unclear += answer < 0;
    return answer > 0;
}

int pw_smaps_is_huge(FILE *smaps, uint64_t start)
{
    char line[512];
    bool inside = false;
    uint64_t whole = 0, huge = 0, page_size = 0;
    while (fgets(line, sizeof line, smaps) != NULL) {
        unsigned long from, to;
        unsigned long long kib;
        char name[32];
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            if (inside) break;
            inside = from <= start && start + extent_bytes <= to;
            if (!inside) continue;
            const uint64_t first = (from + extent_bytes - 1) / extent_bytes, last = to / extent_bytes;
            whole = (last - first) * extent_bytes;
        } else if (inside && sscanf(line, "%31[^:]: %llu", name, &kib) == 2) {
            if (strcmp(name, "KernelPageSize") == 0) page_size = kib * 1024;
            if (strcmp(name, "AnonHugePages") == 0 || strcmp(name, "ShmemPmdMapped") == 0 || strcmp(name, "FilePmdMapped") == 0)
                huge += kib * 1024;
        }
    }
    if (!inside || (huge == 0 && page_size < extent_bytes)) return 0;
    return huge == 0 || huge == whole ? 1 : -1;
}
