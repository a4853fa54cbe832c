/* pagewise-exec POLICY -- PROGRAM ARGUMENTS: becomes the program, under a page policy (policies.h).
 *
 * The policy reaches the program by its environment (tunables of glibc, preloaded libraries) and by prctl, both of
 * which its children inherit. Nothing is set where the policy cannot work: exit code 3. The library report.c writes
 * at the end which pages were observed. The libraries lie where the macros name them, relative to this program.
 */
#define _GNU_SOURCE
#include "collapse.h"
#include "image.h"
#include "quiet.h"
#include "table.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#ifndef PAGEWISE_REMAP
#define PAGEWISE_REMAP "../lib/pagewise/remap.so"
#endif
#ifndef PAGEWISE_REPORT
#define PAGEWISE_REPORT "../lib/pagewise/report.so"
#endif

enum { LIST = 65536 };

/* Whether transparent huge pages go to programs that ask; whether libraries can be preloaded: one that replaces malloc may
 * be there, which only the started program shows. */
struct conditions {
    int is_advised, is_preloaded;
};

static void list_policies(FILE *stream)
{
    for (unsigned number = 0; number < PARTS; number++)
        fprintf(stream, "  %-17s %s\n", parts[number].name, parts[number].meaning);
    fputs("Join them with +, as in reuse+thp; thp and the parts with hugetlbfs take a size: hugetlbfs:1g.\n", stream);
}

static void usage(FILE *stream)
{
    fputs("Usage: pagewise-exec [--quiet] [--record FILE] POLICY -- PROGRAM [ARGUMENTS]\n\n"
          "Become PROGRAM, under a page policy. At its end it reports on standard error which pages it had.\n\n"
          "  --quiet        Report nothing on standard error.\n"
          "  --record FILE  Append the report to FILE as a line of JSON; %h is the host's name, %p the process.\n"
          "  --help         Show this text.\n\n"
          "Policies:\n",
          stream);
    list_policies(stream);
}

/* The mode of transparent huge pages of a size: `always`, `madvise`, `never`; empty if the kernel has no such size. */
static void read_mode(uint64_t size, uint64_t pmd, char mode[16])
{
    char name[128], text[128], general[128];
    read_text(THP_FOLDER "/enabled", general, sizeof general);
    snprintf(name, sizeof name, THP_FOLDER "/hugepages-%llukB/enabled", (unsigned long long)size >> 10);
    read_text(name, text, sizeof text);
    const char *from = strstr(text, "[inherit]") || (!*text && size == pmd) ? general : text;
    const char *open = strchr(from, '['), *end = open ? strchr(open, ']') : NULL;
    mode[0] = '\0';
    if (end && end - open < 16) snprintf(mode, (size_t)(end - open), "%s", open + 1);
}

static void check_transparent_pages(uint64_t size, uint64_t pmd, const char *mode)
{
    unsigned long long kib = size >> 10;
    char remedy[160], larger_mode[16];
    if (!*mode) fail(UNAVAILABLE, NULL, "this kernel has no transparent huge pages of %llu KiB", kib);
    snprintf(remedy, sizeof remedy, "as root: echo madvise > " THP_FOLDER "/hugepages-%llukB/enabled", kib);
    if (size == pmd) snprintf(remedy, sizeof remedy, "as root: echo madvise > " THP_FOLDER "/enabled");
    if (!strcmp(mode, "never"))
        fail(UNAVAILABLE, remedy, "transparent huge pages of %llu KiB are switched off on this node (never)", kib);
    for (uint64_t larger = size * 2; larger <= pmd; larger *= 2) {
        read_mode(larger, pmd, larger_mode);
        if (*larger_mode && strcmp(larger_mode, "never"))
            fail(UNAVAILABLE, "have root switch the larger size off (never)",
                 "pages of %llu KiB are on too, and the kernel takes the largest that fits",
                 (unsigned long long)larger >> 10);
    }
}

static void check_shared_memory(void)
{
    char text[128];
    read_text(THP_FOLDER "/shmem_enabled", text, sizeof text);
    if (!*text || strstr(text, "[never]") || strstr(text, "[deny]"))
        fail(UNAVAILABLE,
             "as root: echo advise > " THP_FOLDER "/shmem_enabled; for /dev/shm: mount -o remount,huge=advise /dev/shm",
             "transparent huge pages of shared memory are switched off on this node");
}

static void check_pool(uint64_t size)
{
    char name[128], text[32], remedy[160];
    unsigned long long kib = size >> 10;
    snprintf(name, sizeof name, POOL_FOLDER "/hugepages-%llukB/free_hugepages", kib);
    read_text(name, text, sizeof text);
    if (!*text) fail(UNAVAILABLE, NULL, "this kernel has no hugetlb pool of pages of %llu KiB", kib);
    if (!pages_left(size))
        fail(UNAVAILABLE, "ask for such pages: the batch system or the container has set this limit (hugetlb.*.max)",
             "the control groups of this process leave it no page of the hugetlb pool of pages of %llu KiB", kib);
    snprintf(remedy, sizeof remedy, "as root: echo N > " POOL_FOLDER "/hugepages-%llukB/nr_hugepages", kib);
    if (strtoull(text, NULL, 10) == 0)
        fail(UNAVAILABLE, remedy,
             "the hugetlb pool of pages of %llu KiB is empty: glibc would silently use base pages", kib);
}

/* Whether a policy works only with the preloaded library: an allocator that replaces malloc may also have settings. */
static int needs_preloading(const char *actions)
{
    static const char *const optional[] = {"", "advise-malloc", "pool-malloc"};
    for (size_t number = 0; number < sizeof optional / sizeof *optional; number++)
        if (!strcmp(actions, optional[number])) return 0;
    return 1;
}

static void check_program(const struct policy *policy, const char *name, const struct image *image, int by_preloading)
{
    struct stat status;
    if (stat(image->path, &status)) return;
    int is_secured = (status.st_mode & S_ISUID && status.st_uid != geteuid())
                     || (status.st_mode & S_ISGID && status.st_gid != getegid())
                     || (geteuid() && getxattr(image->path, "security.capability", NULL, 0) > 0);
    if (is_secured && strcmp(name, "none") && strcmp(name, "advised") && strcmp(name, "collapse"))
        fail(UNAVAILABLE, "run it as its owner, or a copy without these rights",
             "%s has set-user-ID, set-group-ID or capabilities: its loader drops the settings", image->path);
    if (*image->runtime
        && ((by_preloading && wants_huge_pages(policy)) || has(policy, "malloc") || has(policy, "hugetlbfs") || has(policy, "reuse")))
        fail(UNAVAILABLE, "build it without AddressSanitizer",
             "%s: its runtime %s serves malloc and must be loaded before any other library", image->path, image->runtime);
    if (!image->is_elf) return;
    if (by_preloading && wants_huge_pages(policy) && !can_preload(image))
        fail(UNAVAILABLE, "link it dynamically with glibc; collapse and, with a static glibc, malloc preload nothing",
             "%s is static, runs with musl, or is built for another architecture: nothing can be preloaded",
             image->path);
    int by_tunable = has(policy, "malloc") || has(policy, "hugetlbfs") || (has(policy, "thp") && by_preloading);
    if (by_tunable && !image->has_tunable)
        fail(UNAVAILABLE, "run it on a newer system, or have root set transparent huge pages to `always`",
             "%s: its C library does not have the tunable glibc.malloc.hugetlb (glibc 2.35)", image->path);
    if (has(policy, "libhugetlbfs") && (image->is_new_glibc || !can_preload(image)))
        fail(UNAVAILABLE, "use hugetlbfs: glibc's own tunable",
             "libhugetlbfs would silently do nothing: glibc 2.34 removed its hook into malloc");
}

static const char *find_libhugetlbfs(void)
{
    static const char *const files[] = {"/usr/lib/libhugetlbfs.so", "/usr/lib64/libhugetlbfs.so"};
    for (size_t number = 0; number < sizeof files / sizeof *files; number++)
        if (!access(files[number], R_OK)) return files[number];
    fail(UNAVAILABLE, "apt-get install libhugetlbfs0", "libhugetlbfs is not installed");
}

static int applies(const struct setting *row, const struct policy *policy, const struct conditions *conditions)
{
    const char *condition = row->condition;
    if (!*row->part || !has(policy, row->part)) return 0;
    if (!strcmp(condition, "advised")) return conditions->is_advised;
    if (!strcmp(condition, "replaced")) return conditions->is_preloaded;
    return !*condition || !strcmp(condition, policy->size ? "sized" : "unsized");
}

__attribute__((format(printf, 3, 4))) static void append(char list[LIST], char separator, const char *format, ...)
{
    size_t at = strlen(list);
    va_list values;
    va_start(values, format);
    if (at) list[at++] = separator;
    int length = vsnprintf(list + at, LIST - at, format, values);
    va_end(values);
    if (length < 0 || (size_t)length >= LIST - at) fail(REFUSED, NULL, "an environment variable is too long");
}

static void set(const char *name, const char *value)
{
    if (*value ? setenv(name, value, 1) : unsetenv(name)) fail(REFUSED, NULL, "%s: %s", name, strerror(errno));
}

/* Whether the table has a setting of this kind with this name. */
static int is_policy(const char *kind, const char *name, size_t length)
{
    for (unsigned row = 0; row < SETTINGS; row++)
        if (!strcmp(settings[row].kind, kind) && strlen(settings[row].name) == length
            && !strncmp(settings[row].name, name, length))
            return 1;
    return 0;
}

/* Whether each setting of this kind is a whole variable. */
static int is_variable(const char *kind)
{
    for (unsigned number = 0; number < LISTINGS; number++)
        if (!strcmp(listings[number].kind, kind)) return 0;
    return strcmp(kind, "action") != 0;
}

/* A variable that lists settings: the caller's entries that are no page policies, and those of the policy. */
static void set_list(const struct listing *listing, const struct policy *policy, const struct conditions *conditions)
{
    static char list[LIST];
    const char *inherited = getenv(listing->variable), separator = *listing->separator;
    const char stops[] = {separator, *listing->joiner, '\0'};
    list[0] = '\0';
    for (const char *at = inherited ? inherited : ""; *at;) {
        size_t length = strcspn(at, listing->separator), name = strcspn(at, stops);
        if (length && !is_policy(listing->kind, at, name)) append(list, separator, "%.*s", (int)length, at);
        at += length + (at[length] == separator);
    }
    for (unsigned row = 0; row < SETTINGS; row++) {
        const struct setting *of = &settings[row];
        if (strcmp(of->kind, listing->kind) || !applies(of, policy, conditions)) continue;
        append(list, separator, "%s%s", of->name, *of->value ? listing->joiner : "");
        size_t at = strlen(list);
        if (!strcmp(of->value, "{size}")) snprintf(list + at, LIST - at, "%llu", (unsigned long long)policy->size);
        else snprintf(list + at, LIST - at, "%s", of->value);
    }
    set(listing->variable, list);
}

/* Sets lists and variables, as the table has them; `actions` are those of the preloaded library. */
static void apply_settings(const struct policy *policy, const struct conditions *conditions, char actions[LIST])
{
    for (unsigned row = 0; row < SETTINGS; row++)
        if (is_variable(settings[row].kind)) unsetenv(settings[row].name);
    for (unsigned row = 0; row < SETTINGS; row++) {
        const struct setting *of = &settings[row];
        if (!applies(of, policy, conditions)) continue;
        if (is_variable(of->kind)) set(of->name, of->value);
        if (!strcmp(of->kind, "action") && !listed(actions, of->name, ',')) append(actions, ',', "%s", of->name);
    }
    for (unsigned number = 0; number < LISTINGS; number++) set_list(&listings[number], policy, conditions);
}

/* Adds a library to those that are preloaded. */
static void preload(const char *name, char list[LIST])
{
    static char own[PATH_MAX], path[PATH_MAX * 2], real[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    char *end = length < 0 ? NULL : strrchr(own, '/');
    if (!end) fail(REFUSED, NULL, "/proc/self/exe cannot be read");
    *end = '\0';
    snprintf(path, sizeof path, "%s/%s", own, name);
    if (!realpath(path, real)) fail(UNAVAILABLE, "install pagewise again", "%s: %s", path, strerror(errno));
    if (strpbrk(real, " :"))
        fail(UNAVAILABLE, "install pagewise in another folder", "%s: the loader splits this path", real);
    append(list, ':', "%s", real);
}

/* Our libraries first, if the program can have them, then the user's. Those of a launcher around this one do not stay. */
static void set_preloaded(const char *ours, int is_possible)
{
    static char list[LIST], word[LIST];
    const char *inherited = getenv("LD_PRELOAD");
    if (is_possible) snprintf(list, sizeof list, "%s", ours);
    for (const char *at = inherited ? inherited : ""; *at;) {
        size_t length = strcspn(at, ": ");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        if (length && !listed(ours, word, ':')) append(list, ':', "%s", word);
        at += length + (at[length] != '\0');
    }
    set("LD_PRELOAD", list);
}

/* Refuses or accepts transparent huge pages: inherited by all that the program starts, also where it is static. */
static void limit_transparent_pages(unsigned long setting)
{
    if (!prctl(PR_SET_THP_DISABLE, setting & REFUSED_THP, setting & UNLESS_ADVISED, 0, 0)) return;
    if (setting & UNLESS_ADVISED && errno == EINVAL)
        fail(UNAVAILABLE, "run it on Linux 6.18 or newer, or have root set transparent huge pages to `madvise`",
             "this kernel does not have PR_THP_DISABLE_EXCEPT_ADVISED");
    if (setting || prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) > 0)
        fail(UNAVAILABLE, "allow this call; a container's seccomp profile may forbid it",
             "prctl(PR_SET_THP_DISABLE): %s", strerror(errno));
}

/* Where the report goes: `record` with its %h and %p, as an absolute path. */
static void set_record(const char *record)
{
    static char path[PATH_MAX], folder[PATH_MAX];
    char host[256] = "";
    size_t at = 0;
    if (*record != '/' && getcwd(folder, sizeof folder)) at = (size_t)snprintf(path, sizeof path, "%s/", folder);
    gethostname(host, sizeof host - 1);
    for (; *record && at < sizeof path - 1; record++) {
        if (record[0] == '%' && record[1] == 'h') at += (size_t)snprintf(path + at, sizeof path - at, "%s", host);
        else if (record[0] == '%' && record[1] == 'p')
            at += (size_t)snprintf(path + at, sizeof path - at, "%d", (int)getpid());
        else {
            path[at++] = *record;
            continue;
        }
        record++;
    }
    if (at >= sizeof path) fail(USAGE, NULL, "--record: this path is too long");
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
    if (file < 0) fail(REFUSED, NULL, "--record %s: %s", path, strerror(errno));
    close(file);
    set("PAGEWISE_EXEC_RECORD", path);
}

/* Checks that the policy is available, and sets it. */
static void apply(const struct policy *policy, const char *name, const struct image *image, int reporting)
{
    static char actions[LIST], libraries[LIST];
    char mode[16], text[32];
    int is_advisable = has(policy, "text") || has(policy, "bss") || has(policy, "thp") || has(policy, "malloc")
                         || has(policy, "advised");
    if ((wants_huge_pages(policy) || is_advisable) && access("/sys/kernel/mm", F_OK))
        fail(UNAVAILABLE, "as root: mount -t sysfs sysfs /sys; for a container, pass /sys/kernel/mm in",
             "/sys/kernel/mm is missing: the huge pages of this node are unknown");
    uint64_t pmd = pmd_size(), size = has(policy, "thp") && policy->size ? policy->size : pmd;
    uint64_t of_pool = is_from_pool(policy) && policy->size ? policy->size : pool_size();
    if (is_from_pool(policy) && is_transparent(policy) && of_pool != pmd)
        fail(UNAVAILABLE, "name a pool with the size of transparent huge pages",
             "transparent huge pages have %llu KiB, and the pool %llu: a policy has one page size",
             (unsigned long long)pmd >> 10, (unsigned long long)of_pool >> 10);
    read_mode(size, pmd, mode);
    struct conditions conditions = {has(policy, "advised") || strcmp(mode, "always"), can_preload(image)};
    if (is_advisable) check_transparent_pages(size, pmd, mode);
    if (has(policy, "shared")) check_shared_memory();
    if (has(policy, "collapse") && cannot_collapse())
        fail(UNAVAILABLE, "run it as root on Linux 6.1 or newer", "%s", cannot_collapse());
    if (is_from_pool(policy)) check_pool(of_pool);
    apply_settings(policy, &conditions, actions);
    check_program(policy, name, image, needs_preloading(actions));
    /* Daemons that start ranks (srun) do not pass on what prctl set. */
    unsigned long setting = thp_setting(policy);
    if (setting) append(actions, ',', setting & UNLESS_ADVISED ? "refuse-unadvised" : "refuse");
    if (has(policy, "libhugetlbfs")) append(libraries, ':', "%s", find_libhugetlbfs());
    if (can_preload(image) || *image->runtime) {
        if (reporting || *image->runtime) preload(PAGEWISE_REPORT, libraries);
        preload(PAGEWISE_REMAP, libraries);
    }
    set("PAGEWISE_PRELOAD", actions);
    snprintf(text, sizeof text, "%llu", (unsigned long long)size);
    set("PAGEWISE_PRELOAD_SIZE", text);
    snprintf(text, sizeof text, "%llu", (unsigned long long)of_pool);
    set("PAGEWISE_PRELOAD_POOL", text);
    set("PAGEWISE_EXEC_POLICY", name);
    if (*libraries) set_preloaded(libraries, can_preload(image));
    limit_transparent_pages(setting);
    if (has(policy, "collapse") && start_watching()) fail(REFUSED, NULL, "no process can be started: %s", strerror(errno));
}

int main(int count, char **arguments)
{
    const char *record = NULL;
    int quiet = 0, at = 1;
    for (; at < count && arguments[at][0] == '-'; at++) {
        if (!strcmp(arguments[at], "--quiet")) quiet = 1;
        else if (!strcmp(arguments[at], "--record") && at + 1 < count) record = arguments[++at];
        else if (!strncmp(arguments[at], "--record=", 9)) record = arguments[at] + 9;
        else if (!strcmp(arguments[at], "--help")) return usage(stdout), 0;
        else fail(USAGE, "pagewise-exec --help", "%s: there is no such option, or its value is missing", arguments[at]);
    }
    int program = at + 1;
    if (program < count && !strcmp(arguments[program], "--")) program++;
    if (program >= count) return usage(stderr), USAGE;
    struct policy policy;
    const char *why = parse_policy(arguments[at], &policy);
    if (why) {
        fprintf(stderr, "pagewise: error: %s: %s\nThere are:\n", plain(arguments[at]), why);
        list_policies(stderr);
        return USAGE;
    }
    static struct image image;
    static char name[256], process[16];
    if (access("/proc/self", F_OK))
        fail(REFUSED, "as root: mount -t proc proc /proc", "/proc is missing, which shows the pages of programs");
    examine(arguments[program], &image);
    write_name(&policy, name, sizeof name);
    if (record) set_record(record);
    else unsetenv("PAGEWISE_EXEC_RECORD");
    snprintf(process, sizeof process, "%d", (int)getpid());
    set("PAGEWISE_EXEC_PROCESS", process);
    set("PAGEWISE_EXEC_REPORT", quiet ? "" : "line");
    apply(&policy, name, &image, !quiet || record);
    if (!can_preload(&image) && (!quiet || record)) {
        static char line[PATH_MAX + 128];
        int length = snprintf(line, sizeof line, "pagewise: %s: %s: its memory is not observed, nothing is recorded\n",
                              plain(image.path), *image.runtime ? image.runtime : "static, or not with glibc");
        write_quietly(STDERR_FILENO, line, (size_t)length);
    }
    execvp(arguments[program], &arguments[program]);
    fail(errno == ENOENT ? NOT_FOUND : NOT_EXECUTABLE, NULL, "%s: %s", arguments[program], strerror(errno));
}
