/* What page policies need of this node, read from /proc and /sys without allocation. */
#pragma once
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THP_FOLDER "/sys/kernel/mm/transparent_hugepage"
#define POOL_FOLDER "/sys/kernel/mm/hugepages"

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
