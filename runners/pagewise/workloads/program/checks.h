/* Why a page policy is unavailable to a program on this node: the refusals of pagewise-exec. */
#pragma once
#include "collapse.h"
#include "image.h"
#include "table.h"

#include <sys/xattr.h>

/* What the caller will provide before the program starts (--assume), and what would remove the obstacle that was met. */
static struct {
    int thp, pool;
    const char *missing;
} provided;

/* A policy on this node. size: that of its transparent huge pages in bytes, pool: of its pages of a pool. is_advised: whether
 * transparent huge pages go to programs that ask. */
struct pages {
    uint64_t pmd, size, pool;
    char mode[16];
    int is_advised;
};

static const char by_always[] = "have root set transparent huge pages to `always`, or use the policy collapse as root";

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

static struct pages read_pages(const struct policy *policy)
{
    struct pages pages = {.pmd = pmd_size(), .pool = pool_size()};
    if (needs(policy, "pool") && policy->size) pages.pool = policy->size;
    pages.size = has(policy, "thp") && policy->size ? policy->size : pages.pmd;
    read_mode(pages.size, pages.pmd, pages.mode);
    /* A size that is switched on for a run is switched on for programs that ask. */
    pages.is_advised = has(policy, "advised") || strcmp(pages.mode, "always") || (provided.thp && has(policy, "thp") && policy->size);
    return pages;
}

static void check_transparent_pages(const struct pages *pages)
{
    unsigned long long kib = pages->size >> 10;
    char remedy[160], larger_mode[16];
    if (!*pages->mode) fail(UNAVAILABLE, NULL, "this kernel has no transparent huge pages of %llu KiB", kib);
    if (provided.thp) return;
    provided.missing = "thp";
    snprintf(remedy, sizeof remedy, "as root: echo madvise > " THP_FOLDER "/hugepages-%llukB/enabled", kib);
    if (pages->size == pages->pmd) snprintf(remedy, sizeof remedy, "as root: echo madvise > " THP_FOLDER "/enabled");
    if (!strcmp(pages->mode, "never"))
        fail(UNAVAILABLE, remedy, "transparent huge pages of %llu KiB are switched off on this node (never)", kib);
    for (uint64_t larger = pages->size * 2; larger <= pages->pmd; larger *= 2) {
        read_mode(larger, pages->pmd, larger_mode);
        if (*larger_mode && strcmp(larger_mode, "never"))
            fail(UNAVAILABLE, "have root switch the larger size off (never)",
                 "pages of %llu KiB are on too, and the kernel takes the largest that fits",
                 (unsigned long long)larger >> 10);
    }
    provided.missing = NULL;
}

static void check_shared_memory(void)
{
    char text[128];
    read_text(THP_FOLDER "/shmem_enabled", text, sizeof text);
    if (*text && provided.thp) return;
    provided.missing = "thp";
    if (!*text || strstr(text, "[never]") || strstr(text, "[deny]"))
        fail(UNAVAILABLE,
             "as root: echo advise > " THP_FOLDER "/shmem_enabled; for /dev/shm: mount -o remount,huge=advise /dev/shm",
             "transparent huge pages of shared memory are switched off on this node");
    provided.missing = NULL;
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
    if (provided.pool || strtoull(text, NULL, 10)) return;
    provided.missing = "pool";
    snprintf(remedy, sizeof remedy, "as root: echo N > " POOL_FOLDER "/hugepages-%llukB/nr_hugepages", kib);
    fail(UNAVAILABLE, remedy, "the hugetlb pool of pages of %llu KiB is empty: glibc would silently use base pages", kib);
}

static void check_node(const struct policy *policy, const struct pages *pages)
{
    if ((wants_huge_pages(policy) || needs(policy, "thp")) && access(MM_FOLDER, F_OK))
        fail(UNAVAILABLE, "as root: mount -t sysfs sysfs /sys; for a container, pass " MM_FOLDER " in",
             MM_FOLDER " is missing: the huge pages of this node are unknown");
    if (needs(policy, "pool") && is_transparent(policy) && pages->pool != pages->pmd)
        fail(UNAVAILABLE, "name a pool with the size of transparent huge pages, or use the two one after the other",
             "transparent huge pages have %llu KiB, and the pool %llu KiB: a policy has one page size",
             (unsigned long long)pages->pmd >> 10, (unsigned long long)pages->pool >> 10);
    if (needs(policy, "thp")) check_transparent_pages(pages);
    if (needs(policy, "shared")) check_shared_memory();
    if (has(policy, "collapse") && cannot_collapse())
        fail(UNAVAILABLE, "run it as root on Linux 6.1 or newer, or use thp", "%s", cannot_collapse());
}

/* Whether a policy works only with the preloaded library: an allocator that replaces malloc may also have settings. */
static int needs_preloading(const struct policy *policy, const char *actions)
{
    static const char *const optional[] = {"", "advise-malloc", "pool-malloc"};
    for (size_t number = 0; number < sizeof optional / sizeof *optional; number++)
        if (!strcmp(actions, optional[number])) return 0;
    return wants_huge_pages(policy);
}

/* Whether it reaches the program by its environment; else from outside alone. */
static int has_environment(const struct policy *policy)
{
    for (unsigned row = 0; row < SETTINGS; row++)
        if (*settings[row].part && has(policy, settings[row].part)) return 1;
    return 0;
}

static int has_settings(const char *allocator, const char *part)
{
    size_t length = strcspn(allocator, "(");
    while (length && allocator[length - 1] == ' ') length--;
    for (unsigned row = 0; row < SETTINGS; row++)
        if (!strcmp(settings[row].part, part) && strlen(settings[row].kind) == length
            && !strncmp(settings[row].kind, allocator, length))
            return 1;
    return 0;
}

/* A row of a part's settings; NULL stands for every kind, name or condition. */
static const struct setting *find_setting(const char *part, const char *kind, const char *name, const char *condition)
{
    for (unsigned row = 0; row < SETTINGS; row++)
        if (!strcmp(settings[row].part, part) && (!kind || !strcmp(settings[row].kind, kind))
            && (!name || !strcmp(settings[row].name, name)) && (!condition || !strcmp(settings[row].condition, condition)))
            return &settings[row];
    return NULL;
}

/* Whether a part works by tunables of glibc's malloc. */
static int is_of_malloc(const char *part)
{
    const struct setting *row = find_setting(part, "tunable", NULL, NULL);
    return row && strcmp(row->condition, "advised");
}

/* Refuses a part that works by settings of the allocator which the program's does not have. */
static void check_malloc(const struct image *image, const char *part)
{
    int by_settings_alone = !find_setting(part, "action", NULL, "replaced");
    if (*image->allocator && !has_settings(image->allocator, part) && (by_settings_alone || !can_preload(image)))
        fail(UNAVAILABLE, by_settings_alone ? NULL : by_always, "%s: malloc is served by %s, which has no settings for %s%s",
             image->path, image->allocator, part, by_settings_alone ? "" : ", and nothing can be preloaded");
    if (*image->allocator) return;
    if (!image->is_glibc)
        fail(UNAVAILABLE, by_always, "%s: its malloc is not glibc's, whose tunables do nothing then (%s)", image->path, part);
    if (find_setting(part, "tunable", "glibc.malloc.hugetlb", NULL) && !image->has_tunable)
        fail(UNAVAILABLE, "run it on a newer system, or have root set transparent huge pages to `always`",
             "%s: its C library does not have the tunable glibc.malloc.hugetlb (glibc 2.35)", image->path);
}

static void check_program(const struct policy *policy, const struct image *image, int by_preloading)
{
    int is_for_malloc = 0;
    struct stat status;
    for (unsigned number = 0; number < PARTS; number++)
        is_for_malloc |= (int)(policy->parts >> number & 1) && is_of_malloc(parts[number].name);
    if (stat(image->path, &status)) return;
    int is_secured = (status.st_mode & S_ISUID && status.st_uid != geteuid())
                     || (status.st_mode & S_ISGID && status.st_gid != getegid())
                     || (geteuid() && getxattr(image->path, "security.capability", NULL, 0) > 0);
    if (is_secured && has_environment(policy))
        fail(UNAVAILABLE, "run it as its owner, or a copy without these rights",
             "%s has set-user-ID, set-group-ID or capabilities: its loader drops the settings", image->path);
    if (*image->runtime && (by_preloading || is_for_malloc))
        fail(UNAVAILABLE, "build it without AddressSanitizer",
             "%s: its runtime %s serves malloc and must be loaded before any other library", image->path, image->runtime);
    if (!image->is_elf) return;
    if (by_preloading && !can_preload(image))
        fail(UNAVAILABLE, "link it dynamically with glibc; collapse and, with a static glibc, malloc preload nothing",
             "%s is static, runs without glibc, or is built for another architecture: nothing can be preloaded",
             image->path);
    for (unsigned number = 0; number < PARTS; number++)
        if (policy->parts >> number & 1 && is_of_malloc(parts[number].name)) check_malloc(image, parts[number].name);
    if (by_preloading && has(policy, "thp") && !*image->allocator && !image->has_tunable)
        fail(UNAVAILABLE, by_always,
             "%s: its glibc's malloc maps memory itself, and has no tunable for advice (glibc 2.35 added it)", image->path);
    if (has(policy, "libhugetlbfs") && (image->is_new_glibc || !can_preload(image) || *image->allocator))
        fail(UNAVAILABLE, "use hugetlbfs: glibc's own tunable",
             "libhugetlbfs would silently do nothing: it serves only glibc's malloc, before glibc 2.34");
}

static const char *find_libhugetlbfs(void)
{
    static const char *const files[] = {"/usr/lib/libhugetlbfs.so", "/usr/lib64/libhugetlbfs.so"};
    for (size_t number = 0; number < sizeof files / sizeof *files; number++)
        if (!access(files[number], R_OK)) return files[number];
    fail(UNAVAILABLE, "apt-get install libhugetlbfs0", "libhugetlbfs is not installed");
}

