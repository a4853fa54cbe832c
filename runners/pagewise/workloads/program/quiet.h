/* Writing for a library in the user's process: without a signal to the program, and without waiting for a reader. */
#pragma once
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Whether a file may become longer by `length` bytes. Else a part of them would be written. */
static int has_room(int file, size_t length)
{
    struct rlimit limit;
    struct stat status;
    if (fstat(file, &status) || !S_ISREG(status.st_mode) || getrlimit(RLIMIT_FSIZE, &limit)) return 1;
    return limit.rlim_cur == RLIM_INFINITY || (uint64_t)status.st_size + length <= limit.rlim_cur;
}

static int is_ready(int file)
{
    struct pollfd ready = {file, POLLOUT, 0};
    return poll(&ready, 1, 0) == 1 && ready.revents & (POLLOUT | POLLERR);
}

/* Returns 0, or the error. One call, so that lines of several processes stay whole. */
static int write_quietly(int file, const char *text, size_t length)
{
    static const int raised[] = {SIGPIPE, SIGXFSZ, SIGTTOU};
    const struct timespec no_time = {0, 0};
    sigset_t blocked, before, pending;
    sigemptyset(&blocked);
    for (size_t number = 0; number < sizeof raised / sizeof *raised; number++) sigaddset(&blocked, raised[number]);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    sigpending(&pending);
    int error = !has_room(file, length) ? EFBIG : !is_ready(file) ? EAGAIN : 0;
    ssize_t written = error ? 0 : write(file, text, length);
    if (written < 0) error = errno;
    else if (!error && (size_t)written < length) error = ENOSPC;
    /* Those that the program has raised itself stay. */
    for (size_t number = 0; number < sizeof raised / sizeof *raised; number++) {
        sigset_t pending_signal;
        sigemptyset(&pending_signal);
        sigaddset(&pending_signal, raised[number]);
        if (!sigismember(&pending, raised[number])) sigtimedwait(&pending_signal, NULL, &no_time);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return error;
}
