/* Programs that get an environment without the settings of the page policy, as by `env -i`: they are not observed, and
 * a line reports this instead of a record. The library defines note_unobserved(). */
#pragma once
#include "filter.h"
#include "next.h"

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

int execvp(const char *program, char *const arguments[])
{
    int (*next)(const char *, char *const[]);
    check_environment(program, environ);
    *(void **)&next = next_function("execvp");
    return next(program, arguments);
}
