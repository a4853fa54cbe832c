/* Programs that this process starts, and children that it waits for, which may end without a report.
 *
 * Programs that get an environment without the settings of the page policy, as by `env -i`, are not observed: a line
 * reports this instead of a record. The library defines note_unobserved(). At a signal no handler runs: the process
 * that waits for such children counts those that had memory.
 */
#pragma once
#include "filter.h"
#include "next.h"

#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void note_unobserved(const char *program);

static void check_environment(const char *program, char *const *variables)
{
    static const char name[] = "PAGEWISE_EXEC_POLICY=";
    for (; variables && *variables; variables++)
        if (!strncmp(*variables, name, sizeof name - 1)) return;
    note_unobserved(program);
}

int execve(const char *program, char *const arguments[], char *const variables[])
{
    check_environment(program, variables);
    return (int)syscall(SYS_execve, program, arguments, variables);
}

int execv(const char *program, char *const arguments[]) { return execve(program, arguments, environ); }

int execvpe(const char *program, char *const arguments[], char *const variables[])
{
    int (*next)(const char *, char *const[], char *const[]);
    check_environment(program, variables);
    *(void **)&next = next_function("execvpe");
    return next(program, arguments, variables);
}

int execvp(const char *program, char *const arguments[]) { return execvpe(program, arguments, environ); }

int posix_spawn(pid_t *process, const char *program, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const arguments[], char *const variables[])
{
    __typeof__(&posix_spawn) next;
    check_environment(program, variables);
    *(void **)&next = next_function("posix_spawn");
    return next(process, program, actions, attributes, arguments, variables);
}

int posix_spawnp(pid_t *process, const char *program, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const arguments[], char *const variables[])
{
    __typeof__(&posix_spawnp) next;
    check_environment(program, variables);
    *(void **)&next = next_function("posix_spawnp");
    return next(process, program, actions, attributes, arguments, variables);
}

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
