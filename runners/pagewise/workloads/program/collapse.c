/* pagewise-collapse PROGRAM ARGUMENTS: becomes the program, whose memory a second process moves onto huge pages. */
#define _GNU_SOURCE
#include "collapse.h"

#include <errno.h>

int main(int count, char **arguments)
{
    if (count < 2) return fputs("Usage: pagewise-collapse PROGRAM [ARGUMENTS]\n", stderr), 2;
    const char *why = cannot_collapse();
    if (why || start_watching()) {
        fprintf(stderr, "pagewise: error: %s\n", why ? why : strerror(errno));
        return why ? 3 : 4;
    }
    execvp(arguments[1], arguments + 1);
    fprintf(stderr, "pagewise: error: %s: %s\n", arguments[1], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}
