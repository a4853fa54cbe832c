/* Moves the memory of a process, and of those that it starts, onto transparent huge pages from outside. */
#pragma once
#include "node.h"

#include <dirent.h>
#include <limits.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

/* Without progress at most one in SHARE of the time of a CPU; milliseconds between two passes. */
enum { SHARE = 50, SHORTEST_MS = 5, LONGEST_MS = 1000, SYS_NICE = 23 };

/* Why the memory of other processes cannot be moved; NULL if it can. */
static const char *cannot_collapse(void)
{
    static char status[8192];
    void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    /* Of no bytes: whether the advice is known. */
    if (page == MAP_FAILED || madvise(page, 0, MADV_COLLAPSE)) return "this kernel does not have MADV_COLLAPSE (Linux 6.1)";
    munmap(page, (size_t)sysconf(_SC_PAGESIZE));
    read_text("/proc/self/status", status, sizeof status);
    const char *at = strstr(status, "CapEff:");
    if (!at || !(strtoull(at + 7, NULL, 16) >> SYS_NICE & 1))
        return "only root, or a user with CAP_SYS_NICE, may move the memory of another process";
    return NULL;
}

static uint64_t milliseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

/* Collapses a mapping that has base pages in memory and room for a huge page. */
static void collapse_mapping(int process, uintptr_t start, uintptr_t end, uintptr_t huge)
{
    struct iovec range = {(void *)((start + huge - 1) & -huge), 0};
    uintptr_t last = end & -huge;
    if (last <= (uintptr_t)range.iov_base) return;
    range.iov_len = last - (uintptr_t)range.iov_base;
    /* It fails where the program has touched no page yet, or takes its memory back: the next pass tries again. */
    syscall(SYS_process_madvise, process, &range, 1UL, MADV_COLLAPSE, 0);
}

/* Returns the bytes that were on huge pages before. */
static uint64_t collapse_process(long pid, uintptr_t huge)
{
    char name[64], line[PATH_MAX + 128];
    snprintf(name, sizeof name, "/proc/%ld/smaps", pid);
    FILE *maps = fopen(name, "re");
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    uintptr_t start = 0, end = 0, from, to;
    uint64_t resident = 0, on_huge = 0, sum = 0;
    while (maps && process >= 0 && fgets(line, sizeof line, maps)) {
        if (*line < 'A' || *line > 'Z') {
            if (sscanf(line, "%lx-%lx", &from, &to) == 2) start = from, end = to, resident = on_huge = 0;
            continue;
        }
        if (!strncmp(line, "Rss:", 4)) resident = kib_after(line, "Rss:");
        if (strstr(line, "AnonHugePages:") || strstr(line, "ShmemPmdMapped:") || strstr(line, "FilePmdMapped:"))
            on_huge += strtoull(strchr(line, ':') + 1, NULL, 10) * 1024;
        /* The last line of a mapping. */
        if (strncmp(line, "VmFlags:", 8)) continue;
        sum += on_huge;
        if (resident > on_huge && !listed(line, "ht", ' ')) collapse_mapping(process, start, end, huge);
    }
    if (maps) fclose(maps);
    if (process >= 0) close(process);
    return sum;
}

/* The process and its descendants. */
static uint64_t collapse_tree(long pid, uintptr_t huge)
{
    char name[64];
    uint64_t sum = collapse_process(pid, huge);
    snprintf(name, sizeof name, "/proc/%ld/task", pid);
    DIR *threads = opendir(name);
    for (const struct dirent *thread; threads && (thread = readdir(threads));) {
        char children[96 + sizeof thread->d_name], text[8192];
        if (thread->d_name[0] == '.') continue;
        snprintf(children, sizeof children, "/proc/%ld/task/%s/children", pid, thread->d_name);
        read_text(children, text, sizeof text);
        for (char *at = text, *next; *at; at = next) {
            long child = strtol(at, &next, 10);
            if (next == at) break;
            sum += collapse_tree(child, huge);
        }
    }
    if (threads) closedir(threads);
    return sum;
}

static void watch(pid_t program, int handle)
{
    uintptr_t huge = (uintptr_t)pmd_size();
    int pause = SHORTEST_MS, passes = 0;
    uint64_t before = 0;
    struct pollfd ended = {handle, POLLIN, 0};
    while (poll(&ended, 1, pause) == 0) {
        uint64_t began = milliseconds(), on_huge = collapse_tree(program, huge);
        uint64_t spent = (milliseconds() - began) * (SHARE - 1);
        /* What a pass moved is seen by the next one: two without growth show that there is no progress. */
        passes = on_huge > before ? 0 : passes + 1;
        pause = passes < 2 || spent < SHORTEST_MS ? SHORTEST_MS : spent > LONGEST_MS ? LONGEST_MS : (int)spent;
        before = on_huge;
    }
}

/* Starts a process that moves the memory of this one until it ends. It belongs to no group and holds no file of the caller's.
 * Returns 0, or -1 with errno. */
static int start_watching(void)
{
    pid_t program = getpid();
    int handle = (int)syscall(SYS_pidfd_open, program, 0);
    pid_t child = handle < 0 ? -1 : fork();
    if (child == 0) {
        if (fork()) _exit(0);
        setsid();
        int null = open("/dev/null", O_RDWR);
        for (int file = 0; file < 3; file++) dup2(null, file);
        int kept = dup2(handle, 3);
        syscall(SYS_close_range, 4U, ~0U, 0U);
        watch(program, kept);
        _exit(0);
    }
    if (handle >= 0) close(handle);
    return child < 0 || waitpid(child, NULL, 0) < 0 ? -1 : 0;
}
