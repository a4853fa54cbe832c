#define _GNU_SOURCE
#include "machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char thp_folder[] = "/sys/kernel/mm/transparent_hugepage";

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

/* The first line of the file; false if it cannot be read. */
static bool read_line(const char *path, char *line, int length)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    bool read = fgets(line, length, file) != NULL;
    fclose(file);
    return read;
}

/* The number which the file holds; 0 if it cannot be read. */
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

/* Since Linux 6.8 each size has a switch of its own, which rules unless it says "inherit"
   (Documentation/admin-guide/mm/transhuge.rst). */
void pw_machine_thp_switch(struct pw_machine_switch *found)
{
    int kib = (int)(pw_machine_thp_size() / 1024);
    snprintf(found->path, sizeof found->path, "%s/hugepages-%dkB/enabled", thp_folder, kib);
    if (chosen(found->path, found->value, sizeof found->value) && strcmp(found->value, "inherit") != 0) return;
    snprintf(found->path, sizeof found->path, "%s/enabled", thp_folder);
    if (!chosen(found->path, found->value, sizeof found->value)) found->value[0] = '\0';
}

static int64_t pool_number(int64_t page_size, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/kernel/mm/hugepages/hugepages-%lldkB/%s", (long long)(page_size / 1024), name);
    return read_number(path);
}

void pw_machine_pool(struct pw_machine_pool *pool)
{
    pool->page_size = pw_machine_pool_page_size();
    pool->total = pool_number(pool->page_size, "nr_hugepages");
    pool->surplus = pool_number(pool->page_size, "surplus_hugepages");
    pool->overcommit = pool_number(pool->page_size, "nr_overcommit_hugepages");
    pool->available = pool_number(pool->page_size, "free_hugepages") - pool_number(pool->page_size, "resv_hugepages");
}
