#define _GNU_SOURCE
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static void copy(char *text, int32_t length, const char *from)
{
    snprintf(text, (size_t)length, "%s", from);
}

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double pw_system_seconds(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

double pw_system_thread_seconds(void)
{
    return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

void pw_system_page_faults(int64_t *minor, int64_t *major)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    *minor = usage.ru_minflt;
    *major = usage.ru_majflt;
}

void pw_system_placement(int32_t *cpu, int32_t *numa_node)
{
    unsigned c = 0, n = 0;
    if (syscall(SYS_getcpu, &c, &n, NULL) == 0) {
        *cpu = (int32_t)c;
        *numa_node = (int32_t)n;
    } else {
        *cpu = -1;
        *numa_node = -1;
    }
}

static volatile sig_atomic_t is_last_turn;

static void end_turns(int number)
{
    (void)number;
    is_last_turn = 1;
}

void pw_system_begin_turns(void)
{
    struct sigaction action = {.sa_handler = end_turns, .sa_flags = SA_RESTART};
    sigset_t last;
    sigaction(SIGUSR1, &action, NULL);
    sigemptyset(&last);
    sigaddset(&last, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &last, NULL);
}

int32_t pw_system_wait_for_turn(void)
{
    const struct timespec a_moment = {.tv_nsec = 50000};
    sigset_t pending;
    raise(SIGSTOP);
    if (sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 1) return 1;
    /* A thread that a library created earlier does not block the signal; it may handle it after this one has continued. */
    nanosleep(&a_moment, NULL);
    return is_last_turn;
}

int64_t pw_system_base_page_size(void)
{
    return sysconf(_SC_PAGESIZE);
}

/* The value of the first line of /proc/cpuinfo whose key starts with `key`; 0 if missing. */
static int cpuinfo(const char *key, char *value, int32_t length)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (file == NULL) return 0;
    char line[512];
    int is_present = 0;
    while (!is_present && fgets(line, sizeof line, file) != NULL) {
        char *colon = strchr(line, ':');
        if (strncmp(line, key, strlen(key)) != 0 || colon == NULL) continue;
        line[strcspn(line, "\n")] = '\0';
        copy(value, length, colon[1] == ' ' ? colon + 2 : colon + 1);
        is_present = 1;
    }
    fclose(file);
    return is_present;
}

static void processor(char *text, int32_t length)
{
    char implementer[64], part[64];
    if (cpuinfo("model name", text, length)) return; /* x86 */
    if (cpuinfo("cpu", text, length)) return;        /* POWER */
    copy(text, length, "unknown");
    if (cpuinfo("CPU implementer", implementer, sizeof implementer) && cpuinfo("CPU part", part, sizeof part))
        snprintf(text, (size_t)length, "ARM implementer %s part %s", implementer, part);
}

void pw_system_fact(int32_t fact, char *text, int32_t length)
{
    struct utsname u = {.nodename = "unknown", .release = "unknown"};
    time_t now = time(NULL);
    struct tm utc;
    uname(&u);
    switch (fact) {
    case pw_host_name: copy(text, length, u.nodename); break;
    case pw_host_kernel: copy(text, length, u.release); break;
    case pw_host_cpu: processor(text, length); break;
    default: strftime(text, (size_t)length, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc)); break;
    }
}

static int32_t failed(int error, char *reason, int32_t length)
{
    copy(reason, length, strerror(error));
    return error;
}

int32_t pw_system_append(const char *path, const char *text, int64_t n_bytes, char *reason, int32_t length)
{
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) return failed(errno, reason, length);
    int error = 0;
    struct stat before = {0};
    if (flock(file, LOCK_EX) != 0 || fstat(file, &before) != 0) error = errno;
    int64_t done = 0;
    while (error == 0 && done < n_bytes) {
        ssize_t n = write(file, text + done, (size_t)(n_bytes - done));
        if (n >= 0)
            done += n;
        else if (errno != EINTR)
            error = errno;
    }
    if (error != 0 && done > 0 && S_ISREG(before.st_mode) && ftruncate(file, before.st_size) != 0) error = errno;
    if (close(file) != 0 && error == 0) error = errno;
    return error == 0 ? 0 : failed(error, reason, length);
}
