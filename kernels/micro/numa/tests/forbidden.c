/* A machine with two NUMA nodes in a container that forbids move_pages, for LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): glibc names them with underscores. */
FILE *fopen(const char *path, const char *mode)
{
    static char nodes[] = "0-1\n";
    if (strcmp(path, "/sys/devices/system/node/has_memory") == 0) return fmemopen(nodes, sizeof nodes - 1, "r");
    FILE *(*real)(const char *, const char *);
    *(void **)&real = dlsym(RTLD_NEXT, "fopen");
    return real(path, mode);
}

/* Memory policies are accepted, and have no effect. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
long syscall(long number, ...)
{
    va_list list;
    va_start(list, number);
    long word[6];
    for (int i = 0; i < 6; i++) word[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_set_mempolicy) return 0;
    if (number == SYS_move_pages) {
        errno = EPERM;
        return -1;
    }
    long (*real)(long, ...);
    *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    return real(number, word[0], word[1], word[2], word[3], word[4], word[5]);
}
