/* Preloaded into the untimed trial run of a program: copies /proc/self/smaps to PAGEWISE_SNAPSHOT.<pid>.<number>
 * before memory is given back (large free or munmap) and at the end. For programs that end before anybody looks.
 */
#define _GNU_SOURCE
#include "giving_back.h"
#include "quiet.h"

#include <fcntl.h>

enum { MOST = 16, NAME = 4096 };

static int taken, is_filtered;
static __thread int inside;

static int is_looking(void) { return !inside && !is_filtered && taken < MOST; }

static void look(int at_end)
{
    const char *stem = getenv("PAGEWISE_SNAPSHOT");
    (void)at_end;
    if (!stem || inside || is_filtered) return;
    inside = 1;
    int before = errno, number = __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
    char name[NAME], block[16384];
    snprintf(name, sizeof name, "%s.%d.%d", stem, (int)getpid(), number);
    int from = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
    int to = from < 0 ? -1 : open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    for (ssize_t got; to >= 0 && (got = read(from, block, sizeof block)) > 0;)
        if (write_quietly(to, block, (size_t)got)) break;
    if (to >= 0) close(to);
    if (from >= 0) close(from);
    errno = before;
    inside = 0;
}

static void before_filter(void)
{
    look(1);
    is_filtered = 1;
}
