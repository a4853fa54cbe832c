#define _GNU_SOURCE
#include "computed_by.h"

#include <dlfcn.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* The program's own symbols are visible by name only if it exports them, so its libraries are searched first. */
void pw_library_of(const char *symbol, char *file, int32_t length)
{
    char path[PATH_MAX];
    Dl_info info;
    void *address = dlsym(RTLD_DEFAULT, symbol);
    file[0] = '\0';
    if (address == NULL || dladdr(address, &info) == 0) return;
    const char *name = realpath(info.dli_fname, path) != NULL ? path : info.dli_fname;
    snprintf(file, (size_t)length, "%s", name);
}

void pw_one_thread_a_call(void)
{
    /* OpenBLAS and BLIS expect an int or a 64-bit integer in a register: 1 is the same in both. */
    static const char *const setters[] = {"openblas_set_num_threads", "bli_thread_set_num_threads", "MKL_Set_Num_Threads",
                                          "armpl_set_num_threads"};
    for (size_t i = 0; i < sizeof setters / sizeof *setters; i++) {
        union {
            void *address;
            void (*call)(int64_t);
        } set = {.address = dlsym(RTLD_DEFAULT, setters[i])};
        if (set.address != NULL) set.call(1);
    }
}
