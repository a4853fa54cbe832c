/* Programs that get an environment without the settings of the page policy, as by `env -i`: they are not observed, and
 * a line reports this instead of a record. The library defines note_unobserved(). */
#pragma once
#include "filter.h"
#include "next.h"

#include <spawn.h>
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
