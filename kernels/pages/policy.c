/* The policies: their names, and what each requires of the machine and of the process. */
#define _GNU_SOURCE
#include "machine.h"
#include "system.h"

#include <errno.h>
#include <linux/prctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Whether the parent has disabled transparent huge pages for this process: in /proc/PID/status since Linux 5.0. */
static bool is_off_already(void)
{
    char line[256];
    int enabled = 1;
    FILE *status = fopen("/proc/self/status", "re");
    if (status == NULL) return false;
    while (fgets(line, sizeof line, status) != NULL && sscanf(line, "THP_enabled: %d", &enabled) != 1) {
    }
    fclose(status);
    return enabled == 0;
}

/* MADV_NOHUGEPAGE refuses huge pages for the arrays; this also refuses them for stack, heap and OpenMP's memory, which
   THP "always" would otherwise serve, and for every mTHP size. QEMU's user-mode emulation does not support this
   call, and shows the status of QEMU's process. */
static int32_t begin_none(int64_t page_size, struct pw_pages_failure *failure)
{
    (void)page_size;
    if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0) return PW_PAGES_OK;
    const int refusal = errno;
    if (is_off_already()) return PW_PAGES_OK;
    pw_pages_fail(failure, PW_PAGES_UNAVAILABLE, "policy none: cannot refuse transparent huge pages for this process: %s",
                  strerror(refusal));
    return pw_pages_remedy(failure, "allow prctl(PR_SET_THP_DISABLE), which a container's seccomp profile may forbid");
}

static int32_t begin_thp(int64_t page_size, struct pw_pages_failure *failure)
{
    if (page_size == 0) {
        pw_pages_fail(failure, PW_PAGES_UNAVAILABLE, "policy thp: %s",
                      pw_machine_shows_huge_pages() ? "this kernel has no transparent huge pages"
                                                    : "/sys/kernel/mm is missing, so the huge pages are unknown");
        return pw_pages_remedy(failure, "boot a kernel built with CONFIG_TRANSPARENT_HUGEPAGE, and check that /sys is mounted");
    }
    struct pw_machine_switch thp;
    pw_machine_thp_switch(page_size, &thp);
    if (strcmp(thp.value, "never") == 0) {
        pw_pages_fail(failure, PW_PAGES_UNAVAILABLE,
                      "policy thp: transparent huge pages of %lld KiB are set to 'never' in %s",
                      (long long)page_size / 1024, thp.path);
        return pw_pages_remedy(failure,
                               "as root: echo madvise > %s; or pagewise kernels --prepare-pages, which restores it afterwards",
                               thp.path);
    }
    /* Inherited through fork and exec. 1: always refused; 3 (Linux 6.18): refused unless advised, as the arrays are
       (PR_GET_THP_DISABLE(2const)). */
    if (prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1) {
        pw_pages_fail(failure, PW_PAGES_UNAVAILABLE,
                      "policy thp: transparent huge pages are disabled for this process, by an ancestor's "
                      "prctl(PR_SET_THP_DISABLE)");
        return pw_pages_remedy(failure, "start it from a shell or batch job that does not set PR_SET_THP_DISABLE "
                                        "(THP_enabled in /proc/PID/status shows it for each ancestor)");
    }
    return PW_PAGES_OK;
}

static int32_t begin_hugetlbfs(int64_t page_size, struct pw_pages_failure *failure)
{
    if (page_size > 0) return PW_PAGES_OK;
    pw_pages_fail(failure, PW_PAGES_UNAVAILABLE, "policy hugetlbfs: %s",
                  access("/proc/meminfo", F_OK) == 0 ? "this kernel does not support hugetlb pools"
                                                     : "/proc is missing, so the hugetlb pools are unknown");
    return pw_pages_remedy(failure, "boot a kernel built with CONFIG_HUGETLBFS, and check that /proc is mounted");
}

/* Fujitsu's libmpg backs what malloc returns; it reads the kind of pages from the environment before main begins. */
static int32_t begin_fjmpg(const char *wanted, struct pw_pages_failure *failure)
{
    const char *type = pw_machine_fjmpg_type();
    if (type != NULL && strcmp(type, wanted) == 0) return PW_PAGES_OK;
    pw_pages_fail(failure, PW_PAGES_UNAVAILABLE, "policy fjmpg: %s%s", type == NULL ? "libmpg is not loaded" : "libmpg uses ",
                  type == NULL ? "" : type);
    return pw_pages_remedy(failure,
                           "load the configuration's module, or link with libmpg (hugepages=fjmpg) and set XOS_MMM_L_HPAGE_TYPE=%s "
                           "before the program starts",
                           wanted);
}

/* libmpg's large pages have 2 MiB, whatever the default pool's have (A64FX guide, large pages). */
static int64_t fjmpg_size(void)
{
    return pw_machine_pool_page_size() > 0 ? (int64_t)2 << 20 : 0;
}

/* Kinds of pages, in the order of PW_PAGES_NONE and so on: their name, default page size, all sizes that may be named, and the
   preparation of the process. */
static const struct {
    const char *name;
    int64_t (*own_size)(void);
    int32_t (*sizes)(int64_t sizes[PW_MACHINE_SIZES]);
    int32_t (*begin)(int64_t page_size, struct pw_pages_failure *failure);
} natures[] = {
    {"none", pw_system_base_page_size, NULL, begin_none},
    {"thp", pw_machine_thp_size, pw_machine_thp_sizes, begin_thp},
    {"hugetlbfs", pw_machine_pool_page_size, pw_machine_pool_sizes, begin_hugetlbfs},
};

/* The policies of policies.json: their name, the kind of their pages, and whether libmpg provides them. */
static const struct kind {
    const char *name;
    int32_t nature;
    bool libmpg;
} kinds[] = {
#include "policies.inc"
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const struct kind *kind_of(const struct pw_pages_policy *policy)
{
    return policy->kind >= 0 && policy->kind < KINDS ? &kinds[policy->kind] : NULL;
}

static bool is_known(const struct kind *kind)
{
    return !kind->libmpg || pw_machine_fjmpg_type() != NULL;
}

static int32_t sizes_of(const struct kind *kind, int64_t sizes[PW_MACHINE_SIZES])
{
    return kind->libmpg || natures[kind->nature].sizes == NULL ? 0 : natures[kind->nature].sizes(sizes);
}

/* The units of page sizes in names: powers of 1024. */
static const char units[] = "kmgt";

void pw_pages_policy_name(const struct pw_pages_policy *policy, char name[PW_PAGES_NAME + 1])
{
    const struct kind *kind = kind_of(policy);
    snprintf(name, PW_PAGES_NAME + 1, "%s", kind == NULL ? "" : kind->name);
    if (kind == NULL || policy->page_size == 0) return;
    int64_t count = policy->page_size / 1024;
    int unit = 0;
    for (; count % 1024 == 0 && units[unit + 1] != '\0'; count /= 1024) unit++;
    snprintf(name, PW_PAGES_NAME + 1, "%s:%lld%c", kind->name, (long long)count, units[unit]);
}

/* The `number`-th policy of this machine: each kind, followed by its sizes. False: no more policies. */
static bool nth_policy(int32_t number, struct pw_pages_policy *policy)
{
    for (int32_t kind = 0; kind < KINDS; kind++) {
        if (!is_known(&kinds[kind])) continue;
        int64_t sizes[PW_MACHINE_SIZES];
        int32_t count = sizes_of(&kinds[kind], sizes);
        if (number <= count) {
            *policy = (struct pw_pages_policy){kind, number == 0 ? 0 : sizes[number - 1]};
            return true;
        }
        number -= count + 1;
    }
    return false;
}

static void append(char *text, size_t length, const char *separator, const char *name)
{
    size_t used = strlen(text);
    snprintf(text + used, length - used, "%s%s", used == 0 ? "" : separator, name);
}

void pw_pages_names(char *text, int32_t length)
{
    struct pw_pages_policy policy;
    text[0] = '\0';
    for (int32_t i = 0; nth_policy(i, &policy); i++) {
        char name[PW_PAGES_NAME + 1];
        pw_pages_policy_name(&policy, name);
        append(text, (size_t)length, "|", name);
    }
}

static int32_t remedy_choose(struct pw_pages_failure *failure)
{
    char names[128] = "", sizes[PW_PAGES_TEXT / 2] = "";
    struct pw_pages_policy policy;
    int32_t last = KINDS - 1;
    while (!is_known(&kinds[last])) last--;
    for (int32_t kind = 0; kind <= last; kind++)
        append(names, sizeof names, kind == last ? " or " : ", ", kinds[kind].name);
    for (int32_t i = 0; nth_policy(i, &policy); i++) {
        char name[PW_PAGES_NAME + 1];
        pw_pages_policy_name(&policy, name);
        if (policy.page_size > 0) append(sizes, sizeof sizes, ", ", name);
    }
    return pw_pages_remedy(failure, "choose %s%s%s", names, sizes[0] == '\0' ? "" : "; page sizes of this machine: ", sizes);
}

/* The bytes of a size such as 64k or 2M; -1: it is none. */
static int64_t size_from_name(const char *text)
{
    const size_t digits = strspn(text, "0123456789");
    const char *unit = digits == 0 || digits > 7 || text[digits] == '\0' ? NULL : strchr(units, text[digits] | 0x20);
    if (unit == NULL || text[digits + 1] != '\0') return -1;
    const int64_t number = strtoll(text, NULL, 10);
    const int shift = 10 * (int)(unit - units + 1);
    return number == 0 || number > INT64_MAX >> shift ? -1 : number << shift;
}

int32_t pw_pages_policy_from_name(const char *name, struct pw_pages_policy *policy, struct pw_pages_failure *failure)
{
    const size_t length = strcspn(name, ":");
    const int64_t size = name[length] == '\0' ? 0 : size_from_name(name + length + 1);
    for (int32_t i = 0; nth_policy(i, policy); i++) {
        const char *kind = kinds[policy->kind].name;
        if (strlen(kind) == length && strncmp(kind, name, length) == 0 && policy->page_size == size) return PW_PAGES_OK;
    }
    *policy = (struct pw_pages_policy){PW_PAGES_NONE, 0};
    if (size > 0 && !pw_machine_shows_huge_pages()) {
        pw_pages_fail(failure, PW_PAGES_UNAVAILABLE, "policy %.64s: /sys/kernel/mm is missing, so the page sizes are unknown",
                      name);
        return pw_pages_remedy(failure, "check that /sys is mounted");
    }
    pw_pages_fail(failure, PW_PAGES_USAGE, "unknown page policy '%.64s'", name);
    return remedy_choose(failure);
}

int32_t pw_pages_nature(const struct pw_pages_policy *policy)
{
    const struct kind *kind = kind_of(policy);
    return kind == NULL ? PW_PAGES_NONE : kind->nature;
}

bool pw_pages_by_libmpg(const struct pw_pages_policy *policy)
{
    const struct kind *kind = kind_of(policy);
    return kind != NULL && kind->libmpg;
}

int64_t pw_pages_size(const struct pw_pages_policy *policy)
{
    const struct kind *kind = kind_of(policy);
    if (kind == NULL) return 0;
    if (policy->page_size > 0) return policy->page_size;
    return kind->libmpg && kind->nature == PW_PAGES_HUGETLBFS ? fjmpg_size() : natures[kind->nature].own_size();
}

bool pw_pages_is_mthp(const struct pw_pages_policy *policy)
{
    return policy->kind == PW_PAGES_THP && policy->page_size > 0 && policy->page_size < pw_machine_thp_size();
}

int32_t pw_pages_begin(const struct pw_pages_policy *policy, struct pw_pages_failure *failure)
{
    const struct kind *kind = kind_of(policy);
    if (kind != NULL) {
        const int32_t code = natures[kind->nature].begin(pw_pages_size(policy), failure);
        return code == PW_PAGES_OK && kind->libmpg ? begin_fjmpg(natures[kind->nature].name, failure) : code;
    }
    pw_pages_fail(failure, PW_PAGES_USAGE, "unknown page policy %d", policy->kind);
    return remedy_choose(failure);
}
