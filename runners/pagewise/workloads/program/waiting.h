/* Children that a signal ended: no handler runs at their end, so that they report nothing. The process that waits for them
 * counts those that had memory. */
#pragma once
#include "next.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* Memory of fewer bytes is not reported. */
static const uint64_t least_memory = 16u << 20;
/* largest: the most that one of them had in memory, in bytes; 0 if that is unknown. */
static struct {
    unsigned number;
    uint64_t largest;
} unobserved;

static void count_unobserved(uint64_t memory)
{
    __atomic_fetch_add(&unobserved.number, 1, __ATOMIC_RELAXED);
    if (memory > unobserved.largest) unobserved.largest = memory;
}

pid_t wait4(pid_t process, int *status, int options, struct rusage *usage)
{
    int own_status;
    struct rusage own_usage;
    pid_t (*next)(pid_t, int *, int, struct rusage *);
    *(void **)&next = next_function("wait4");
    if (!status) status = &own_status;
    if (!usage) usage = &own_usage;
    pid_t ended = next(process, status, options, usage);
    uint64_t memory = ended > 0 && WIFSIGNALED(*status) ? (uint64_t)usage->ru_maxrss << 10 : 0;
    if (memory >= least_memory) count_unobserved(memory);
    return ended;
}

pid_t waitpid(pid_t process, int *status, int options) { return wait4(process, status, options, NULL); }

pid_t wait3(int *status, int options, struct rusage *usage) { return wait4(-1, status, options, usage); }

pid_t wait(int *status) { return wait4(-1, status, 0, NULL); }

/* It does not return how much memory a child had. */
int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    siginfo_t own = {0};
    int (*next)(idtype_t, id_t, siginfo_t *, int);
    *(void **)&next = next_function("waitid");
    if (!info) info = &own;
    int failed = next(type, id, info, options);
    int is_reaped = !failed && options & WEXITED && !(options & WNOWAIT) && info->si_pid > 0;
    if (is_reaped && (info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED)) count_unobserved(0);
    return failed;
}
