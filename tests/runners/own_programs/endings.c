/* Ends in one way or another: endings WAY [FILE]. Its output is still in buffers then. */
#define _GNU_SOURCE
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_late(void) { puts("destroyed"); }

/* As programs do that change their title in the list of processes. */
static void overwrite_environment(void)
{
    for (char **variable = environ; *variable; variable++) memset(*variable, 'x', strlen(*variable));
    clearenv();
}

int main(int count, char **arguments)
{
    const char *way = count > 1 ? arguments[1] : "";
    FILE *file = count > 2 ? fopen(arguments[2], "w") : NULL;
    if (file) fputs("kept\n", file);
    if (file) setvbuf(stderr, NULL, _IOFBF, 4096);
    atexit(write_late);
    puts("output");
    if (!strcmp(way, "cleared")) clearenv();
    if (!strcmp(way, "titled")) overwrite_environment();
    if (!strcmp(way, "dropped") && (setgroups(0, NULL) || setgid(65534) || setuid(65534))) return 9;
    if (!strcmp(way, "locked")) flockfile(stdout);
    if (!strcmp(way, "at once")) _Exit(6);
    if (!strcmp(way, "quickly")) quick_exit(7);
    return 5;
}
