#define _GNU_SOURCE
#include "machine.h"

#include <dirent.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void pw_pages_remedy(struct pw_pages_failure *failure, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(failure->remedy, sizeof failure->remedy, format, values);
    va_end(values);
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
static bool chosen(const char *path, char *value, size_t length)
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
        if (chosen(path, value, sizeof value)) sizes[count++] = sizes[i];
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
    if (chosen(setting->path, setting->value, sizeof setting->value) && strcmp(setting->value, "inherit") != 0) return;
    snprintf(setting->path, sizeof setting->path, "%s/enabled", thp_folder);
    if (!chosen(setting->path, setting->value, sizeof setting->value)) setting->value[0] = '\0';
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

void pw_machine_pool(int64_t page_size, struct pw_machine_pool *pool)
{
    pool->page_size = page_size;
    pool->total = number_of(pool_folder, page_size, "nr_hugepages");
    pool->surplus = number_of(pool_folder, page_size, "surplus_hugepages");
    pool->overcommit = number_of(pool_folder, page_size, "nr_overcommit_hugepages");
    pool->available =
        number_of(pool_folder, page_size, "free_hugepages") - number_of(pool_folder, page_size, "resv_hugepages");
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
