/* What page policies need of this node, read from /proc and /sys without allocation. */
#pragma once
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef MM_FOLDER
#define MM_FOLDER "/sys/kernel/mm"
#endif
#define THP_FOLDER MM_FOLDER "/transparent_hugepage"
#define POOL_FOLDER MM_FOLDER "/hugepages"

/* Whether a list with this separator contains the word. */
__attribute__((unused)) static int listed(const char *list, const char *word, char separator)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == separator) && (at[length] == separator || !at[length])) return 1;
    return 0;
}

/* The text with question marks for control characters, also those of C1 in UTF-8: names of others go to a terminal. */
__attribute__((unused)) static const char *plain(char *text)
{
    for (unsigned char *at = (unsigned char *)text; *at; at++)
        if (*at < 0x20 || *at == 0x7f) *at = '?';
        else if (*at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0) memset(at, '?', 2);
    return text;
}

/* The text of a small file; the empty text if it cannot be read. */
static void read_text(const char *name, char *text, size_t room)
{
    int file = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, room - 1);
    if (file >= 0) close(file);
    text[length < 0 ? 0 : length] = '\0';
}

/* The bytes of a line such as "VmHWM:  12 kB"; 0 without one. */
__attribute__((unused)) static uint64_t kib_after(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtoull(at + strlen(name), NULL, 10) * 1024 : 0;
}

/* Whether the word or number of a file of a control group is a number. */
__attribute__((unused)) static int read_limit(const char *folder, const char *name, const char *part, const char *ending,
                                              uint64_t *number)
{
    char file[8192], text[32], *end;
    snprintf(file, sizeof file, "%s/%s%s.%s", folder, name, part, ending);
    read_text(file, text, sizeof text);
    *number = strtoull(text, &end, 10);
    return end != text;
}

/* How many more pages of a hugetlb pool the control groups leave to this process (hugetlb.2MB.max, or the files of version 1);
 * UINT64_MAX without a limit. */
__attribute__((unused)) static uint64_t pages_left(uint64_t size)
{
    static char list[4096], folder[4200];
    char name[32];
    uint64_t least = UINT64_MAX, limit, used;
    int unit = size >= 1u << 30 ? 30 : size >= 1u << 20 ? 20 : 10;
    snprintf(name, sizeof name, "hugetlb.%llu%s", (unsigned long long)size >> unit, unit == 30 ? "GB" : unit == 20 ? "MB" : "KB");
    read_text("/proc/self/cgroup", list, sizeof list);
    for (char *line = list, *next; *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next) *next++ = '\0';
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) continue;
        *path++ = '\0';
        int is_second = !*++controllers;
        if (!is_second && !listed(controllers, "hugetlb", ',')) continue;
        const char *base = !is_second ? "/sys/fs/cgroup/hugetlb" : "/sys/fs/cgroup/unified";
        if (is_second && access(base, F_OK)) base = "/sys/fs/cgroup";
        size_t shortest = strlen(base);
        snprintf(folder, sizeof folder, "%s%s", base, path);
        for (char *end = folder + strlen(folder); end >= folder + shortest; end = strrchr(folder, '/')) {
            *end = '\0';
            for (int reserved = 0; reserved < 2; reserved++) {
                const char *part = reserved ? ".rsvd" : "";
                if (read_limit(folder, name, part, is_second ? "max" : "limit_in_bytes", &limit)
                    && read_limit(folder, name, part, is_second ? "current" : "usage_in_bytes", &used)
                    && (limit > used ? limit - used : 0) / size < least)
                    least = (limit > used ? limit - used : 0) / size;
            }
        }
    }
    return least;
}

/* The size of transparent huge pages in bytes. */
__attribute__((unused)) static uint64_t pmd_size(void)
{
    char text[32];
    read_text(THP_FOLDER "/hpage_pmd_size", text, sizeof text);
    uint64_t size = strtoull(text, NULL, 10);
    return size ? size : 2u << 20;
}

/* The page size of the default hugetlb pool in bytes. */
__attribute__((unused)) static uint64_t pool_size(void)
{
    char text[8192];
    read_text("/proc/meminfo", text, sizeof text);
    uint64_t size = kib_after(text, "Hugepagesize:");
    return size ? size : 2u << 20;
}
