/* Programs that forbid system calls (seccomp): what they allow is unknown, and one call too many ends them. The library
 * that includes this defines before_filter(), after which it makes no call that the program does not make, and
 * is_overruled(), which decides whether a prctl has no effect.
 */
#pragma once
#include "next.h"

#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static void before_filter(void);
static int is_overruled(int option, unsigned long value);

/* seccomp(2), or the prctl that does the same. Without a filter, or with flags, it only asks what the kernel can do. */
static void check_filter(int is_strict, unsigned long flags, unsigned long filter)
{
    if (is_strict ? !flags && !filter : filter != 0) before_filter();
}

int prctl(int option, ...)
{
    static int (*next)(int, unsigned long, unsigned long, unsigned long, unsigned long);
    unsigned long values[4];
    va_list more;
    va_start(more, option);
    for (int number = 0; number < 4; number++) values[number] = va_arg(more, unsigned long);
    va_end(more);
    if (!next) *(void **)&next = next_function("prctl");
    if (is_overruled(option, values[0])) return 0;
    if (option == PR_SET_SECCOMP) {
        int is_strict = values[0] == SECCOMP_MODE_STRICT;
        check_filter(is_strict, 0, is_strict ? 0 : values[1]);
    }
    return next(option, values[0], values[1], values[2], values[3]);
}

/* Programs and libseccomp have no other function for this call. Its end is a jump: some calls return on another stack. */
long call_system(long number, long first, long second, long third, long fourth, long fifth, long sixth) __asm__("syscall");
long call_system(long number, long first, long second, long third, long fourth, long fifth, long sixth)
{
    static long (*next)(long, long, long, long, long, long, long);
    if (!next) *(void **)&next = next_function("syscall");
    if (number == SYS_seccomp && (first == SECCOMP_SET_MODE_STRICT || first == SECCOMP_SET_MODE_FILTER))
        check_filter(first == SECCOMP_SET_MODE_STRICT, (unsigned long)second, (unsigned long)third);
    if (number == SYS_prctl && first == PR_SET_SECCOMP)
        check_filter(second == SECCOMP_MODE_STRICT, 0, second == SECCOMP_MODE_STRICT ? 0 : (unsigned long)third);
    return next(number, first, second, third, fourth, fifth, sixth);
}
