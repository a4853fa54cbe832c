#define _GNU_SOURCE
#include "machine.h"

#include <dirent.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char thp_folder[] = "/sys/kernel/mm/transparent_hugepage";
static const char pool_folder[] = "/sys/kernel/mm/hugepages";

int32_t pw_pages_fail(struct pw_pages_failure *failure, int32_t code, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(failure->message, sizeof failure->message, format, values);
    va_end(values);
    failure->code = code;
    failure->remedy[0] = '\0';
    return code;
}

int32_t pw_pages_remedy(struct pw_pages_failure *failure, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(failure->remedy, sizeof failure->remedy, format, values);
    va_end(values);
    return failure->code;
}

/* Read the first line of the file; false if it cannot be read. */
static bool read_line(const char *path, char *line, int length)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    bool read = fgets(line, length, file) != NULL;
    fclose(file);
    return read;
}

/* The number in the file; 0 if it cannot be read. */
static int64_t read_number(const char *path)
{
    char line[64];
    long long number = 0;
    if (!read_line(path, line, sizeof line) || sscanf(line, "%lld", &number) != 1) return 0;
    return number;
}

bool pw_machine_shows_huge_pages(void)
{
    return access("/sys/kernel/mm", F_OK) == 0;
}

int64_t pw_machine_thp_size(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/hpage_pmd_size", thp_folder);
    return read_number(path);
}

int64_t pw_machine_pool_page_size(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    if (file == NULL) return 0;
    char line[128];
    long long kib = 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "Hugepagesize: %lld kB", &kib) == 1) break;
    fclose(file);
    return kib * 1024;
}

/* The bracketed word of a line such as "always [madvise] never". */
static bool bracketed_word(const char *path, char *value, size_t length)
{
    char line[128];
    if (!read_line(path, line, sizeof line)) return false;
    char *start = strchr(line, '[');
    char *end = start == NULL ? NULL : strchr(start, ']');
    if (end == NULL) return false;
    *end = '\0';
    snprintf(value, length, "%s", start + 1);
    return true;
}

/* The path of hugepages-<size>kB/<name> in the folder. */
static void path_of(char path[128], const char *folder, int64_t page_size, const char *name)
{
    snprintf(path, 128, "%s/hugepages-%lldkB/%s", folder, (long long)(page_size / 1024), name);
}

/* The sizes in the names of the subfolders (hugepages-64kB). */
static int32_t sizes_in(const char *folder, int64_t sizes[PW_MACHINE_SIZES])
{
    int32_t count = 0;
    DIR *opened = opendir(folder);
    if (opened == NULL) return 0;
    const struct dirent *entry;
    while (count < PW_MACHINE_SIZES && (entry = readdir(opened)) != NULL) {
        long long kib;
        if (sscanf(entry->d_name, "hugepages-%lldkB", &kib) != 1) continue;
        int32_t at = count++;
        for (; at > 0 && sizes[at - 1] > kib * 1024; at--) sizes[at] = sizes[at - 1];
        sizes[at] = kib * 1024;
    }
    closedir(opened);
    return count;
}

/* Sizes that only files can have (8 KiB) are listed too, without a switch for anonymous memory. */
int32_t pw_machine_thp_sizes(int64_t sizes[PW_MACHINE_SIZES])
{
    int32_t count = 0, all = sizes_in(thp_folder, sizes);
    for (int32_t i = 0; i < all; i++) {
        char path[128], value[32];
        path_of(path, thp_folder, sizes[i], "enabled");
        if (bracketed_word(path, value, sizeof value)) sizes[count++] = sizes[i];
    }
    return count;
}

int32_t pw_machine_pool_sizes(int64_t sizes[PW_MACHINE_SIZES])
{
    return sizes_in(pool_folder, sizes);
}

/* Since Linux 6.8 each size has a switch, which applies unless it is set to "inherit"
   (Documentation/admin-guide/mm/transhuge.rst). */
void pw_machine_thp_switch(int64_t page_size, struct pw_machine_switch *setting)
{
    path_of(setting->path, thp_folder, page_size, "enabled");
    if (bracketed_word(setting->path, setting->value, sizeof setting->value) && strcmp(setting->value, "inherit") != 0) return;
    snprintf(setting->path, sizeof setting->path, "%s/enabled", thp_folder);
    if (!bracketed_word(setting->path, setting->value, sizeof setting->value)) setting->value[0] = '\0';
}

int64_t pw_machine_thp_next(int64_t page_size)
{
    int64_t sizes[PW_MACHINE_SIZES];
    int32_t count = pw_machine_thp_sizes(sizes);
    for (int32_t i = 0; i < count; i++) {
        if (sizes[i] <= page_size) continue;
        struct pw_machine_switch one;
        pw_machine_thp_switch(sizes[i], &one);
        if (strcmp(one.value, "never") != 0) return sizes[i];
    }
    return 0;
}

static int64_t number_of(const char *folder, int64_t page_size, const char *name)
{
    char path[128];
    path_of(path, folder, page_size, name);
    return read_number(path);
}

void pw_machine_thp_counts(int64_t page_size, struct pw_pages_counts *counts)
{
    static const char *const losses[] = {"stats/anon_fault_fallback", "stats/split", "stats/split_deferred"};
    char path[128], line[64];
    long long faulted;
    path_of(path, thp_folder, page_size, "stats/anon_fault_alloc");
    counts->faulted = read_line(path, line, sizeof line) && sscanf(line, "%lld", &faulted) == 1 ? faulted : -1;
    counts->lost = 0;
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        counts->lost += number_of(thp_folder, page_size, losses[i]);
}

/* The pages that a limit in this folder leaves: hugetlb.2MB<part>.<limit> minus .<use>; INT64_MAX without a limit. */
static int64_t left_in(const char *folder, int64_t page_size, const char *part, const char *limit, const char *use)
{
    int unit = page_size >= 1 << 30 ? 30 : page_size >= 1 << 20 ? 20 : 10;
    const char *name = unit == 30 ? "GB" : unit == 20 ? "MB" : "KB";
    long long most = 0, used = 0;
    char file[4400], line[64];
    snprintf(file, sizeof file, "%s/hugetlb.%lld%s%s.%s", folder, (long long)(page_size >> unit), name, part, limit);
    if (!read_line(file, line, sizeof line) || sscanf(line, "%lld", &most) != 1) return INT64_MAX;
    snprintf(file, sizeof file, "%s/hugetlb.%lld%s%s.%s", folder, (long long)(page_size >> unit), name, part, use);
    if (!read_line(file, line, sizeof line) || sscanf(line, "%lld", &used) != 1) return INT64_MAX;
    return most > used ? (most - used) / page_size : 0;
}

/* The least that the limits of this process's control group and of those above it leave (Documentation/admin-guide/
   cgroup-v2.rst; of version 1: cgroup-v1/hugetlb.rst). A process beyond them is ended by SIGBUS. */
static int64_t pages_allowed(int64_t page_size)
{
    int64_t least = INT64_MAX;
    char line[4200], folder[4300], controllers[128];
    FILE *groups = fopen("/proc/self/cgroup", "re");
    while (groups != NULL && fgets(line, sizeof line, groups) != NULL) {
        char *path = strchr(line, '/');
        bool second = strncmp(line, "0::", 3) == 0;
        bool first = sscanf(line, "%*d:%127[^:]:", controllers) == 1 && strstr(controllers, "hugetlb") != NULL;
        if (path == NULL || (!second && !first)) continue;
        path[strcspn(path, "\n")] = '\0';
        const char *base = !second ? "/sys/fs/cgroup/hugetlb" : "/sys/fs/cgroup/unified";
        if (second && access(base, F_OK) != 0) base = "/sys/fs/cgroup";
        snprintf(folder, sizeof folder, "%s%s", base, path);
        for (char *end = folder + strlen(folder); end >= folder + strlen(base); end = strrchr(folder, '/')) {
            *end = '\0';
            for (int reserved = 0; reserved < 2; reserved++) {
                int64_t left = left_in(folder, page_size, reserved ? ".rsvd" : "", second ? "max" : "limit_in_bytes",
                                       second ? "current" : "usage_in_bytes");
                if (left < least) least = left;
            }
        }
    }
    if (groups != NULL) fclose(groups);
    return least;
}

void pw_machine_pool(int64_t page_size, struct pw_machine_pool *pool)
{
    pool->page_size = page_size;
    pool->total = number_of(pool_folder, page_size, "nr_hugepages");
    pool->surplus = number_of(pool_folder, page_size, "surplus_hugepages");
    pool->overcommit = number_of(pool_folder, page_size, "nr_overcommit_hugepages");
    pool->available =
        number_of(pool_folder, page_size, "free_hugepages") - number_of(pool_folder, page_size, "resv_hugepages");
    pool->allowed = pages_allowed(page_size);
    path_of(pool->path, pool_folder, page_size, "nr_hugepages");
}

static int is_fjmpg(struct dl_phdr_info *library, size_t size, void *loaded)
{
    (void)size;
    if (strstr(library->dlpi_name, "/libmpg.so") != NULL) *(bool *)loaded = true;
    return *(bool *)loaded;
}

const char *pw_machine_fjmpg_type(void)
{
    bool loaded = false;
    dl_iterate_phdr(is_fjmpg, &loaded);
    if (!loaded) return NULL;
    const char *type = getenv("XOS_MMM_L_HPAGE_TYPE");
    return type == NULL ? "hugetlbfs" : type; /* libmpg's default */
}
