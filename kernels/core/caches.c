#define _GNU_SOURCE
#include "bound.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { path_length = 4096, line_length = 8192, most_indices = 16, guest_kib_per_cpu = 32 * 1024 };

/* Open the file with this path for reading; NULL if it cannot be opened. */
static FILE *__attribute__((format(printf, 1, 2))) open_file(const char *format, ...)
{
    char path[path_length];
    va_list values;
    va_start(values, format);
    vsnprintf(path, sizeof path, format, values);
    va_end(values);
    return fopen(path, "re");
}

/* Read a file's first line, without its end, and close it; false if `file` is NULL or empty. */
static bool read_line(FILE *file, char line[line_length])
{
    if (file == NULL) return false;
    bool read = fgets(line, line_length, file) != NULL;
    fclose(file);
    if (read) line[strcspn(line, "\n")] = '\0';
    return read;
}

/* Read a property of cache `index` of a CPU. */
static bool read_cache(const char *root, int cpu, int index, const char *property, char line[line_length])
{
    return read_line(open_file("%s/sys/devices/system/cpu/cpu%d/cache/index%d/%s", root, cpu, index, property), line);
}

/* Whether these CPUs belong to a virtual machine (x86: a hypervisor sets this flag). */
static bool is_guest(const char *root)
{
    char line[line_length];
    bool is_set = false;
    FILE *file = open_file("%s/proc/cpuinfo", root);
    if (file == NULL) return false;
    while (!is_set && fgets(line, sizeof line, file) != NULL) is_set = strncmp(line, "flags", 5) == 0 && strstr(line, " hypervisor") != NULL;
    fclose(file);
    return is_set;
}

/* The CPU's last-level cache; the CPUs that share it are added to `counted`. */
static int64_t last_level(const char *root, int cpu, bool *counted)
{
    char line[line_length];
    int last = -1;
    long highest = 0;
    for (int index = 0; index < most_indices; index++) {
        if (!read_cache(root, cpu, index, "type", line) || strcmp(line, "Instruction") == 0) continue;
        if (!read_cache(root, cpu, index, "level", line) || strtol(line, NULL, 10) <= highest) continue;
        highest = strtol(line, NULL, 10);
        last = index;
    }
    counted[cpu] = true;
    if (last < 0 || !read_cache(root, cpu, last, "size", line)) return 0;
    const int64_t kib = strtoll(line, NULL, 10); /* 32768K */
    int64_t sharing = 1;
    if (read_cache(root, cpu, last, "shared_cpu_list", line)) {
        bool set[PW_BOUND_MOST_CPUS] = {false};
        pw_bound_add_list(line, set);
        sharing = 0;
        for (int other = 0; other < PW_BOUND_MOST_CPUS; other++) {
            counted[other] |= set[other];
            sharing += set[other];
        }
    }
    /* A guest sees the whole cache of its host, which serves many more CPUs: 480 MiB for two of them, where the bandwidth was that
       of memory from 128 MiB on. Most processors have less than 32 MiB per core. */
    const int64_t most = is_guest(root) ? sharing * guest_kib_per_cpu : INT64_MAX / 1024;
    return 1024 * (kib < most ? kib : most);
}

int64_t pw_caches_last_level(const char *root, const char *cpus)
{
    int64_t bytes = 0;
    bool *set = calloc(2 * PW_BOUND_MOST_CPUS, sizeof *set);
    if (set == NULL) return 0;
    bool *counted = set + PW_BOUND_MOST_CPUS;
    pw_bound_add_list(cpus, set);
    for (int cpu = 0; cpu < PW_BOUND_MOST_CPUS; cpu++)
        if (set[cpu] && !counted[cpu]) bytes += last_level(root, cpu, counted);
    free(set);
    return bytes;
}

/* The least limit of a control group and of those above it; `limit` if it is lower. */
static int64_t least_limit(const char *root, const char *folder, char *group, const char *file, int64_t limit)
{
    char line[line_length];
    for (;;) {
        /* Without a limit the line is "max". */
        if (read_line(open_file("%s/%s%s/%s", root, folder, group, file), line) && line[0] >= '0' && line[0] <= '9' && strtoll(line, NULL, 10) < limit)
            limit = strtoll(line, NULL, 10);
        char *end = strrchr(group, '/');
        if (end == NULL) return limit;
        *end = '\0';
    }
}

int64_t pw_caches_free_memory(const char *root)
{
    char line[line_length];
    long long kib = 0;
    FILE *file = open_file("%s/proc/meminfo", root);
    if (file == NULL) return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "MemAvailable: %lld kB", &kib) == 1) break;
    fclose(file);
    int64_t bytes = 1024 * kib;
    file = open_file("%s/proc/self/cgroup", root);
    if (file == NULL) return bytes;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *group = strrchr(line, ':');
        if (group == NULL) continue;
        if (strncmp(line, "0::", 3) == 0)
            bytes = least_limit(root, "sys/fs/cgroup", group + 1, "memory.max", bytes);
        else if (strstr(line, ":memory:") != NULL)
            bytes = least_limit(root, "sys/fs/cgroup/memory", group + 1, "memory.limit_in_bytes", bytes);
    }
    fclose(file);
    return bytes;
}
