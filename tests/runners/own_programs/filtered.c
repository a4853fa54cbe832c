/* Forbids system calls, and uses memory before and after: filtered WAY. A call that is not allowed ends it by SIGSYS. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 32 << 20 };

#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static struct sock_filter rules[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    ALLOW(SYS_write),
    ALLOW(SYS_exit_group),
    ALLOW(SYS_mmap),
    ALLOW(SYS_munmap),
    ALLOW(SYS_brk),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};
static struct sock_fprog filter = {sizeof rules / sizeof *rules, rules};

static int use(void)
{
    char *memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *block = malloc(LENGTH);
    if (memory == MAP_FAILED || !block) return 0;
    memset(memory, 1, LENGTH);
    memset(block, 2, LENGTH);
    int sum = memory[LENGTH / 2] + block[LENGTH / 3];
    free(block);
    return munmap(memory, LENGTH) ? 0 : sum;
}

int main(int count, char **arguments)
{
    static char buffer[4096];
    const char *way = count > 1 ? arguments[1] : "prctl";
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    if (use() != 3) return 8;
    puts("before");
    /* What libraries ask for before they set a filter. */
    syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL);
    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL);
    if (!strcmp(way, "asked")) return 5;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 9;
    if (!strcmp(way, "strict")) {
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) return 9;
        fflush(stdout);
        for (;;) syscall(SYS_exit, 5);
    }
    if (!strcmp(way, "prctl") && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return 9;
    if (!strcmp(way, "raw") && syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return 9;
    if (!strcmp(way, "seccomp") && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter)) return 9;
    if (use() != 3) return 8;
    puts("after");
    if (!strcmp(way, "seccomp")) _exit((fflush(stdout), 5));
    return 5;
}
