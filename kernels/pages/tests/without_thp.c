/* without_thp [--unless-advised] PROGRAM [ARGUMENT]...: run the program as the child of a parent that disabled
   transparent huge pages by prctl. Exit 77 if this kernel does not support it. */
#include <linux/prctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    const unsigned long except_advised = 1UL << 1; /* PR_THP_DISABLE_EXCEPT_ADVISED, Linux 6.18 */
    unsigned long flags = 0;
    int first = 1;
    if (count > 1 && strcmp(arguments[1], "--unless-advised") == 0) {
        flags = except_advised;
        first = 2;
    }
    if (count <= first) return 2;
    if (prctl(PR_SET_THP_DISABLE, 1UL, flags, 0UL, 0UL) != 0) {
        fputs("skipped: this kernel does not support prctl(PR_SET_THP_DISABLE) with these flags\n", stderr);
        return 77;
    }
    execvp(arguments[first], arguments + first);
    perror(arguments[first]);
    return 1;
}
