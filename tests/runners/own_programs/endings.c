/* Ends in one way or another: endings WAY [FILE]. Its output is still in buffers then. */
#define _GNU_SOURCE
#include <grp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *way = "";

/* Another thread has standard output then. */
static void write_late(void)
{
    if (strcmp(way, "locked")) puts("destroyed");
}

/* As programs do that change their title in the list of processes. */
static void overwrite_environment(void)
{
    for (char **variable = environ; *variable; variable++) memset(*variable, 'x', strlen(*variable));
    clearenv();
}

static void *keep_output(void *stream)
{
    flockfile(stream);
    pause();
    return stream;
}

/* As a thread does that waits for input. */
static void lock_output(void)
{
    pthread_t thread;
    puts("locked");
    pthread_create(&thread, NULL, keep_output, stdout);
    while (!ftrylockfile(stdout)) funlockfile(stdout);
}

int main(int count, char **arguments)
{
    FILE *file = count > 2 ? fopen(arguments[2], "w") : NULL;
    if (count > 1) way = arguments[1];
    if (file) fputs("kept\n", file);
    if (file) setvbuf(stderr, NULL, _IOFBF, 4096);
    atexit(write_late);
    puts("output");
    if (!strcmp(way, "cleared")) clearenv();
    if (!strcmp(way, "titled")) overwrite_environment();
    if (!strcmp(way, "dropped") && (setgroups(0, NULL) || setgid(65534) || setuid(65534))) return 9;
    if (!strcmp(way, "locked")) lock_output();
    if (!strcmp(way, "at once")) _Exit(6);
    if (!strcmp(way, "quickly")) quick_exit(7);
    return 5;
}
