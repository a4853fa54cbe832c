#define _GNU_SOURCE
#include "bound.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pw_bound_add_list(const char *list, bool *set)
{
    while (*list != '\0' && *list != '\n') {
        char *end;
        long first = strtol(list, &end, 10), last = first;
        if (end == list) return;
        if (*end == '-') last = strtol(end + 1, &end, 10);
        for (long i = first; i >= 0 && i <= last && i < PW_BOUND_MOST_CPUS; i++) set[i] = true;
        list = *end == ',' ? end + 1 : end;
    }
}

/* Add the CPUs that a thread may use. */
static void add_thread(const char *thread, bool *set)
{
    static const char key[] = "Cpus_allowed_list:";
    char path[64], *line = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "/proc/self/task/%.20s/status", thread);
    FILE *file = fopen(path, "r");
    if (file == NULL) return;
    while (getline(&line, &size, file) > 0) {
        if (strncmp(line, key, sizeof key - 1) != 0) continue;
        const char *list = line + sizeof key - 1;
        pw_bound_add_list(list + strspn(list, " \t"), set);
        break;
    }
    free(line);
    fclose(file);
}

void pw_bound_cpus(char *list, int32_t length)
{
    list[0] = '\0';
    bool *set = calloc(PW_BOUND_MOST_CPUS, sizeof *set);
    DIR *threads = opendir("/proc/self/task");
    if (set != NULL && threads != NULL) {
        for (struct dirent *one; (one = readdir(threads)) != NULL;)
            if (one->d_name[0] != '.') add_thread(one->d_name, set);
        int used = 0;
        for (int first = 0; first < PW_BOUND_MOST_CPUS && used < length; first++) {
            if (!set[first]) continue;
            int last = first;
            while (last + 1 < PW_BOUND_MOST_CPUS && set[last + 1]) last++;
            used += snprintf(list + used, (size_t)(length - used), "%s%d", used > 0 ? "," : "", first);
            if (last > first && used < length) used += snprintf(list + used, (size_t)(length - used), "-%d", last);
            first = last;
        }
        if (used >= length) list[0] = '\0';
    }
    if (threads != NULL) closedir(threads);
    free(set);
}

/* Add the pages of a mapping by node: `N0=12 N1=4 kernelpagesize_kB=4`. */
static int32_t add_pages(const char *line, int32_t n, int64_t *bytes, int32_t nodes)
{
    const char *size = strstr(line, "kernelpagesize_kB=");
    if (size == NULL) return nodes;
    const int64_t page = 1024 * strtoll(strchr(size, '=') + 1, NULL, 10);
    for (const char *at = line; (at = strstr(at, " N")) != NULL;) {
        char *end;
        const long node = strtol(at + 2, &end, 10);
        if (end > at + 2 && *end == '=' && node >= 0 && node < n) {
            bytes[node] += page * strtoll(end + 1, NULL, 10);
            if (node >= nodes) nodes = (int32_t)node + 1;
        }
        at += 2;
    }
    return nodes;
}

int32_t pw_bound_memory(char *policy, int32_t length, int32_t n, int64_t *bytes)
{
    policy[0] = '\0';
    memset(bytes, 0, (size_t)n * sizeof *bytes);
    FILE *file = fopen("/proc/self/numa_maps", "r");
    if (file == NULL) return 0;
    char *line = NULL;
    size_t size = 0;
    int32_t nodes = 0;
    /* The first mapping, the program itself, has no explicit policy: its line shows that of the process. */
    while (getline(&line, &size, file) > 0) {
        if (policy[0] == '\0' && strchr(line, ' ') != NULL) {
            const char *name = strchr(line, ' ') + 1;
            snprintf(policy, (size_t)length, "%.*s", (int)strcspn(name, " \n"), name);
        }
        /* Pages of the hugetlb pool are shown as a file's too. */
        if (strstr(line, " file=") == NULL || strstr(line, " huge ") != NULL) nodes = add_pages(line, n, bytes, nodes);
    }
    free(line);
    fclose(file);
    return nodes;
}
