#define _POSIX_C_SOURCE 200809L
#include "terminal.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t noted = 0;

static const int asking[] = {SIGHUP, SIGINT, SIGTERM};

static void note(int number)
{
    if (noted == 0) noted = number;
}

void pw_terminal_watch(void)
{
    for (size_t i = 0; i < sizeof asking / sizeof asking[0]; i++) {
        struct sigaction before, ours = {.sa_handler = note, .sa_flags = SA_RESTART};
        if (sigaction(asking[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(asking[i], &ours, NULL);
    }
}

int32_t pw_terminal_signal(void)
{
    return (int32_t)noted;
}

void pw_terminal_end(void)
{
    if (noted == 0) return;
    signal(noted, SIG_DFL);
    raise(noted);
}

int32_t pw_terminal_seen(void)
{
    return isatty(STDERR_FILENO) != 0;
}
