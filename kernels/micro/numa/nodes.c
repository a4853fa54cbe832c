/* NUMA nodes by system calls, without libnuma. */
#define _GNU_SOURCE
#include "nodes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { most_cpus = 8192, most_nodes = 1024, word_bits = 8 * sizeof(unsigned long) };
enum { bind_policy = 2 }; /* MPOL_BIND, linux/mempolicy.h */

static unsigned long allowed[most_cpus / word_bits];

/* Read a list in the kernel's format, such as "0-3,8", into a set; false if the file does not exist. */
static bool read_list(const char *path, unsigned long *set, long bits)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    long first, last;
    char after;
    while (fscanf(file, "%ld", &first) == 1) {
        last = first;
        after = (char)fgetc(file);
        if (after == '-' && fscanf(file, "%ld%c", &last, &after) < 1) break;
        for (long i = first; i >= 0 && i <= last && i < bits; i++) set[i / word_bits] |= 1UL << (i % word_bits);
        if (after != ',') break;
    }
    fclose(file);
    return true;
}

void pw_node_begin(void)
{
    if (syscall(SYS_sched_getaffinity, 0, sizeof allowed, allowed) < 0) memset(allowed, 0xff, sizeof allowed);
}

static bool read_nodes(bool with_memory, unsigned long *nodes)
{
    return read_list(with_memory ? "/sys/devices/system/node/has_memory" : "/sys/devices/system/node/has_cpu", nodes,
                     most_nodes);
}

void pw_node_list(int32_t with_memory, char *text, int32_t length)
{
    unsigned long nodes[most_nodes / word_bits] = {0};
    if (!read_nodes(with_memory != 0, nodes)) nodes[0] = 1;
    int used = 0;
    text[0] = 0;
    for (int node = 0; node < most_nodes && used < length - 6; node++)
        if (nodes[node / word_bits] >> (node % word_bits) & 1)
            used += snprintf(text + used, (size_t)(length - used), used > 0 ? ",%d" : "%d", node);
}

static bool only_one_node(void)
{
    char nodes[16];
    pw_node_list(1, nodes, sizeof nodes);
    return strchr(nodes, ',') == NULL;
}

int32_t pw_node_bind(int64_t cpu_node, int64_t memory_node)
{
    char path[64];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%lld/cpulist", (long long)cpu_node);
    unsigned long cpus[most_cpus / word_bits] = {0};
    if (read_list(path, cpus, most_cpus)) {
        bool any = false;
        for (size_t i = 0; i < most_cpus / word_bits; i++) any |= (cpus[i] &= allowed[i]) != 0;
        if (!any) return -1;
        if (syscall(SYS_sched_setaffinity, 0, sizeof cpus, cpus) != 0) return errno;
    }
    /* Containers forbid the call, which is unnecessary with one node. */
    if (only_one_node()) return 0;
    unsigned long nodes[most_nodes / word_bits] = {0};
    nodes[memory_node / word_bits] = 1UL << (memory_node % word_bits);
    return syscall(SYS_set_mempolicy, bind_policy, nodes, (unsigned long)most_nodes + 1) == 0 ? 0 : errno;
}

int64_t pw_node_misplaced(const void *address, int64_t bytes, int64_t node)
{
    enum { batch = 512 };
    int64_t page = sysconf(_SC_PAGESIZE), misplaced = 0;
    const char *const end = (const char *)address + bytes, *at = end - bytes - (uintptr_t)address % (uintptr_t)page;
    while (at < end) {
        const void *pages[batch];
        int on[batch];
        unsigned long count = 0;
        for (; count < batch && at < end; at += page) pages[count++] = at;
        if (syscall(SYS_move_pages, 0, count, pages, NULL, on, 0) != 0) return only_one_node() ? 0 : -1;
        for (unsigned long i = 0; i < count; i++) misplaced += on[i] != node;
    }
    return misplaced;
}
