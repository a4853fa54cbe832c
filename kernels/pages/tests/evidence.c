/* What the kernel reports of pages: see checks.h. */
#define _GNU_SOURCE
#include "checks.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* The interface of PAGEMAP_SCAN is newer than many systems' headers: so the names are defined here, with the values of
   Documentation/admin-guide/mm/pagemap.rst and PAGEMAP_SCAN(2const). */
struct scan {
    uint64_t size, flags, start, end, walk_end, regions, n_regions, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
struct region {
    uint64_t start, end, categories;
};
static const unsigned long pagemap_scan = _IOWR('f', 16, struct scan);
static const uint64_t page_is_huge = 1U << 6;

static uintptr_t page_size(void)
{
    return (uintptr_t)sysconf(_SC_PAGESIZE);
}

static uintptr_t page_of(const char *address)
{
    return (uintptr_t)address / page_size() * page_size();
}

static uintptr_t end_of(const char *address, int64_t bytes)
{
    return page_of(address + bytes - 1) + page_size();
}

int64_t huge_bytes_of(char *address, int64_t bytes)
{
    int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    struct region mapped[64];
    struct scan scan = {.size = sizeof scan,
                        .start = page_of(address),
                        .end = end_of(address, bytes),
                        .regions = (uintptr_t)mapped,
                        .n_regions = sizeof mapped / sizeof *mapped,
                        .category_mask = page_is_huge,
                        .return_mask = page_is_huge};
    int64_t huge = 0;
    while (huge >= 0 && scan.start < scan.end) {
        int n = ioctl(file, pagemap_scan, &scan);
        if (n < 0) huge = -1;
        for (int i = 0; i < n; i++) huge += (int64_t)(mapped[i].end - mapped[i].start);
        scan.start = scan.walk_end;
    }
    close(file);
    return huge;
}

int64_t compound_bytes_of(char *address, int64_t bytes)
{
    const uint64_t present = UINT64_C(1) << 63, frame = (UINT64_C(1) << 55) - 1; /* of an entry of pagemap */
    const uint64_t compound = (1U << 15) | (1U << 16);                           /* KPF_COMPOUND_HEAD, _TAIL */
    int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    int flags = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
    int64_t sum = map < 0 || flags < 0 ? -1 : 0;
    for (uintptr_t page = page_of(address); sum >= 0 && page < end_of(address, bytes); page += page_size()) {
        uint64_t entry = 0, flag = 0;
        if (pread(map, &entry, sizeof entry, (off_t)(page / page_size() * sizeof entry)) != sizeof entry)
            sum = -1;
        else if ((entry & present) == 0)
            continue;
        else if ((entry & frame) == 0 || /* hidden from users other than root */
                 pread(flags, &flag, sizeof flag, (off_t)((entry & frame) * sizeof flag)) != sizeof flag)
            sum = -1;
        else if ((flag & compound) != 0)
            sum += (int64_t)page_size();
    }
    if (map >= 0) close(map);
    if (flags >= 0) close(flags);
    return sum;
}

bool is_accessible(char *address, int64_t bytes)
{
    /* Writing to a pipe reads the page, and fails with EFAULT if there is none. */
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return true;
    bool accessible = false;
    for (uintptr_t page = page_of(address); !accessible && page < end_of(address, bytes); page += page_size())
        accessible = write(ends[1], address + (page - page_of(address)), 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return accessible;
}

char *page_at(char *address)
{
    return address - ((uintptr_t)address - page_of(address));
}

void advise(const array_t *array, int64_t bytes, bool huge)
{
    const uintptr_t size = (uintptr_t)thp_size(), before = (uintptr_t)array->address % size;
    const uintptr_t length = (before + (uintptr_t)bytes + size - 1) / size * size;
    check(madvise(array->address - before, length, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) == 0, "cannot advise");
}

int64_t base_page(void)
{
    return (int64_t)page_size();
}

int64_t thp_size(void)
{
    return number_in(THP_FOLDER "hpage_pmd_size");
}

int64_t number_in(const char *format, ...)
{
    char path[256], text[32] = "";
    va_list values;
    va_start(values, format);
    vsnprintf(path, sizeof path, format, values);
    va_end(values);
    FILE *file = fopen(path, "re");
    if (file == NULL) return -1;
    const bool is_read = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    return is_read ? strtoll(text, NULL, 10) : -1;
}
