/* What a page policy asks of the machine and of the process. */
#define _GNU_SOURCE
#include "machine.h"
#include "system.h"

#include <errno.h>
#include <linux/prctl.h>
#include <string.h>
#include <sys/prctl.h>

int64_t pw_pages_size(int32_t policy)
{
    switch (policy) {
    case PW_PAGES_THP: return pw_machine_thp_size();
    case PW_PAGES_HUGETLBFS: return pw_machine_pool_page_size();
    default: return pw_system_base_page_size();
    }
}

/* MADV_NOHUGEPAGE refuses huge pages for the arrays; this does so for stack, heap and OpenMP's memory as well, which
   THP "always" would otherwise serve, and for every size of multi-size THP. */
static int32_t begin_none(struct pw_pages_failure *failure)
{
    if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0) return PW_PAGES_OK;
    pw_pages_fail(failure, PW_PAGES_UNAVAILABLE, "policy none: cannot refuse transparent huge pages for this process: %s",
                  strerror(errno));
    pw_pages_remedy(failure, "allow prctl(PR_SET_THP_DISABLE), which a container's seccomp profile may forbid");
    return failure->code;
}

static int32_t begin_thp(struct pw_pages_failure *failure)
{
    if (pw_machine_thp_size() == 0) {
        pw_pages_fail(failure, PW_PAGES_UNAVAILABLE, "policy thp: this kernel has no transparent huge pages");
        pw_pages_remedy(failure, "boot a kernel built with CONFIG_TRANSPARENT_HUGEPAGE, and see that /sys is mounted");
        return failure->code;
    }
    struct pw_machine_switch thp;
    pw_machine_thp_switch(&thp);
    if (strcmp(thp.value, "never") == 0) {
        pw_pages_fail(failure, PW_PAGES_UNAVAILABLE, "policy thp: transparent huge pages are set to 'never' in %s",
                      thp.path);
        pw_pages_remedy(failure, "as root: echo madvise > %s", thp.path);
        return failure->code;
    }
    /* Inherited through fork and exec. 1: refused altogether; 3 (Linux 6.18): refused unless advised, which we do
       (PR_GET_THP_DISABLE(2const)). */
    if (prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1) {
        pw_pages_fail(failure, PW_PAGES_UNAVAILABLE,
                      "policy thp: transparent huge pages are disabled for this process, by an ancestor's "
                      "prctl(PR_SET_THP_DISABLE)");
        pw_pages_remedy(failure, "start it from a shell or batch job that does not set PR_SET_THP_DISABLE "
                                 "(THP_enabled in /proc/PID/status tells it of each ancestor)");
        return failure->code;
    }
    return PW_PAGES_OK;
}

static int32_t begin_hugetlbfs(struct pw_pages_failure *failure)
{
    if (pw_machine_pool_page_size() > 0) return PW_PAGES_OK;
    pw_pages_fail(failure, PW_PAGES_UNAVAILABLE, "policy hugetlbfs: this kernel has no pools of huge pages");
    pw_pages_remedy(failure, "boot a kernel built with CONFIG_HUGETLBFS, and see that /proc is mounted");
    return failure->code;
}

int32_t pw_pages_begin(int32_t policy, struct pw_pages_failure *failure)
{
    switch (policy) {
    case PW_PAGES_NONE: return begin_none(failure);
    case PW_PAGES_THP: return begin_thp(failure);
    case PW_PAGES_HUGETLBFS: return begin_hugetlbfs(failure);
    default:
        pw_pages_fail(failure, PW_PAGES_USAGE, "page policy %d does not exist", policy);
        pw_pages_remedy(failure, "choose none, thp or hugetlbfs");
        return failure->code;
    }
}
