/* See mapping.h. */
#define _GNU_SOURCE
#include "mapping.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const uint64_t extent_bytes = UINT64_C(1) << PW_EXTENT_SHIFT;

/* The interface of PAGEMAP_SCAN: Linux 6.7, Documentation/admin-guide/mm/pagemap.rst; missing in older headers. */
struct scan {
    uint64_t size, flags, start, end, walk_end, ranges, n_ranges, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
struct scan_range {
    uint64_t start, end, categories;
};
static const uint64_t category_huge = 1 << 6;
#define SCAN_PAGEMAP _IOWR('f', 16, struct scan)

/* The share of `start` .. `end` that is on huge pages, in bytes; -1 if the kernel does not report it. */
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
    const int n_ranges = ioctl(pagemap, SCAN_PAGEMAP, &scan);
    if (n_ranges < 0) return -1;
    return n_ranges == 0 ? 0 : (int64_t)(range.end - range.start);
}

void pw_mapping_set(struct pw_mapping *mapping, enum pw_mapping_rule rule, bool (*is_huge)(void *, uint64_t), void *context)
{
    mapping->rule = rule;
    mapping->shift = rule == PW_FJMPG ? PW_SMALLEST_SHIFT : PW_EXTENT_SHIFT;
    mapping->is_huge = is_huge;
    mapping->context = context;
    pw_mapping_forget(mapping);
}

void pw_mapping_forget(struct pw_mapping *mapping)
{
    memset(mapping->slot, 0, sizeof mapping->slot);
}

void pw_observer_open(struct pw_observer *observer)
{
    *observer = (struct pw_observer){.lock = PTHREAD_MUTEX_INITIALIZER, .changes = 1, .pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)};
    if (observer->pagemap >= 0 && scan_huge(observer->pagemap, 0, extent_bytes) < 0) pw_observer_close(observer);
}

void pw_observer_close(struct pw_observer *observer)
{
    if (observer->pagemap >= 0) close(observer->pagemap);
    observer->pagemap = -1;
    free(observer->data);
    observer->data = NULL;
    observer->n_data = 0;
}

void pw_observer_forget(struct pw_observer *observer)
{
    __atomic_add_fetch(&observer->changes, 1, __ATOMIC_RELEASE);
}

bool pw_observer_is_huge(void *context, uint64_t start)
{
    struct pw_observer *observer = context;
    if (observer->pagemap >= 0) return scan_huge(observer->pagemap, start, start + extent_bytes) == (int64_t)extent_bytes;
    FILE *smaps = fopen("/proc/self/smaps", "re");
    if (smaps == NULL) return false;
    const int answer = pw_smaps_is_huge(smaps, start);
    fclose(smaps);
    if (answer < 0) __atomic_add_fetch(&observer->unclear, 1, __ATOMIC_RELAXED);
    return answer > 0;
}

static void read_data(struct pw_observer *observer, uint64_t changes)
{
    enum { most = 4096 };
    FILE *maps = fopen("/proc/self/maps", "re");
    struct pw_stretch *data = maps == NULL ? NULL : calloc(most, sizeof *data);
    const size_t n_data = data == NULL ? 0 : pw_maps_data(maps, observer->program, pw_elf_bss, data, most);
    if (maps != NULL) fclose(maps);
    pthread_mutex_lock(&observer->lock);
    free(observer->data);
    observer->data = data;
    observer->n_data = n_data;
    observer->known = changes;
    pthread_mutex_unlock(&observer->lock);
}

bool pw_observer_is_data(void *context, uint64_t start)
{
    struct pw_observer *observer = context;
    const uint64_t changes = __atomic_load_n(&observer->changes, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&observer->known, __ATOMIC_RELAXED) != changes) read_data(observer, changes);
    pthread_mutex_lock(&observer->lock);
    size_t low = 0, high = observer->n_data;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (observer->data[middle].end <= start)
            low = middle + 1;
        else
            high = middle;
    }
    const bool is_data = low < observer->n_data && observer->data[low].start <= start;
    pthread_mutex_unlock(&observer->lock);
    return is_data;
}

size_t pw_maps_data(FILE *maps, const char *program, uint64_t (*bss)(const char *file), struct pw_stretch *data, size_t most)
{
    char line[2 * PATH_MAX], first[PATH_MAX] = "";
    size_t count = 0;
    struct pw_stretch library_bss = {0, 0};
    while (count < most && fgets(line, sizeof line, maps) != NULL) {
        unsigned long start, end;
        char access[8] = "", path[PATH_MAX] = ""; /* of 4096 characters in Linux, as in the format */
        if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %4095[^\n]", &start, &end, access, path) < 3) continue;
        const bool file = path[0] == '/', writable = access[1] == 'w';
        if (file && first[0] == '\0') memcpy(first, path, sizeof path);
        const bool own = file && strcmp(path, program != NULL ? program : first) == 0;
        struct pw_stretch stretch = {start, end};
        /* Memory after a library's .bss may share its mapping. */
        if (!file && start == library_bss.start) stretch.start = library_bss.end < end ? library_bss.end : end;
        if (writable && (own || !file) && stretch.start < end) data[count++] = stretch;
        if (file && writable && !own) library_bss = (struct pw_stretch){end, end + bss(path)};
    }
    return count;
}

uint64_t pw_elf_bss(const char *file)
{
    Elf64_Ehdr head;
    Elf64_Phdr segment;
    uint64_t bytes = 0;
    FILE *elf = fopen(file, "re");
    if (elf == NULL) return 0;
    if (fread(&head, sizeof head, 1, elf) == 1 && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
        head.e_ident[EI_CLASS] == ELFCLASS64 && fseek(elf, (long)head.e_phoff, SEEK_SET) == 0) {
        const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
        for (int i = 0; i < head.e_phnum && fread(&segment, sizeof segment, 1, elf) == 1; i++) {
            if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0) continue;
            const uint64_t begin = segment.p_vaddr % page, mapped = (begin + segment.p_filesz + page - 1) / page;
            bytes = ((begin + segment.p_memsz + page - 1) / page - mapped) * page;
        }
    }
    fclose(elf);
    return bytes;
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
    if (!inside || (huge == 0 && page_size <= (uint64_t)sysconf(_SC_PAGESIZE))) return 0;
    return huge == 0 || huge == whole ? 1 : -1;
}
