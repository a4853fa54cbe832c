/* A saboteur, preloaded into a real kernel: a thread that changes its arrays while it computes.
 *
 * SABOTAGE: nan, wrong (elements that are not numbers, or off by one), split (huge pages split by base pages that refuse
 * them). Memory is read and written by process_vm_readv(2): what is no longer mapped is an error there, no signal. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LEAST = 12 << 20, STEP = 2 << 20, BASE = 4096 };

static int copy(int out, double *value, uintptr_t place)
{
    struct iovec own = {value, sizeof *value}, other = {(void *)place, sizeof *value};
    return (out ? process_vm_writev : process_vm_readv)(getpid(), &own, 1, &other, 1, 0) == sizeof *value;
}

static void spoil(const char *how, uintptr_t first, uintptr_t last)
{
    for (uintptr_t place = (first + STEP - 1) / STEP * STEP + BASE; place + STEP <= last; place += STEP) {
        double value = 0.0;
        /* Arrays are zero until they are initialised. */
        if (!copy(0, &value, place) || value == 0.0) continue;
        if (strcmp(how, "split") == 0) {
            madvise((void *)place, BASE, MADV_NOHUGEPAGE);
        } else {
            value = strcmp(how, "nan") == 0 ? NAN : 1000.0;
            copy(1, &value, place);
        }
    }
}

static void *work(void *how)
{
    for (;;) {
        FILE *maps = fopen("/proc/self/maps", "r");
        char line[512];
        while (maps && fgets(line, sizeof line, maps)) {
            unsigned long first, last, inode;
            if (sscanf(line, "%lx-%lx rw-p %*s %*s %lu", &first, &last, &inode) == 3 && inode == 0 && last - first >= LEAST)
                spoil(how, first, last);
        }
        if (maps) fclose(maps);
        usleep(2000);
    }
    return NULL;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;
    const char *how = getenv("SABOTAGE");
    /* hyperfine and others of the run are left alone. */
    if (how && strstr(program_invocation_short_name, "pw-")) pthread_create(&thread, NULL, work, (void *)how);
}
