/* The table of page policies (policies.h) for C programs, and the names of policies: parts and a page size. */
#pragma once
#include "node.h"

struct part {
    const char *name, *size, *source, *targets, *meaning;
};
struct listing {
    const char *kind, *variable, *separator, *joiner;
};
struct setting {
    const char *part, *condition, *kind, *name, *value;
};
struct policy {
    unsigned parts; /* a bit per row of `parts` */
    uint64_t size;  /* of its pages in bytes; 0 if it names none */
};

#define OFFER(...)
#define SETTING(...)
#define LIST(...)
#define PART(...) {__VA_ARGS__},
static const struct part parts[] = {
#include "policies.h"
};
#undef PART
#undef LIST
#define PART(...)
#define LIST(...) {__VA_ARGS__},
__attribute__((unused)) static const struct listing listings[] = {
#include "policies.h"
};
#undef LIST
#undef SETTING
#define LIST(...)
#define SETTING(...) {__VA_ARGS__},
__attribute__((unused)) static const struct setting settings[] = {
#include "policies.h"
};
#undef PART
#undef LIST
#undef SETTING
#undef OFFER
enum {
    PARTS = sizeof parts / sizeof *parts,
    LISTINGS = sizeof listings / sizeof *listings,
    SETTINGS = sizeof settings / sizeof *settings
};

static int has(const struct policy *policy, const char *name)
{
    for (unsigned number = 0; number < PARTS; number++)
        if (!strcmp(parts[number].name, name)) return policy->parts >> number & 1;
    return 0;
}

/* Whether a part puts memory on huge pages; else they are refused. */
static int wants_huge_pages(const struct policy *policy)
{
    for (unsigned number = 0; number < PARTS; number++)
        if (policy->parts >> number & 1 && *parts[number].targets) return 1;
    return 0;
}

/* Whether a part needs this of the system. */
static int needs(const struct policy *policy, const char *source)
{
    for (unsigned number = 0; number < PARTS; number++)
        if (policy->parts >> number & 1 && !strcmp(parts[number].source, source)) return 1;
    return 0;
}

/* Whether a part puts memory on transparent huge pages. */
__attribute__((unused)) static int is_transparent(const struct policy *policy)
{
    for (unsigned number = 0; number < PARTS; number++)
        if (policy->parts >> number & 1 && *parts[number].targets && strcmp(parts[number].source, "pool")) return 1;
    return 0;
}

/* What PR_SET_THP_DISABLE leaves to the program, as PR_GET_THP_DISABLE returns it: 0 or 1, plus flags (Linux 6.18). */
enum { ALLOWED = 0, REFUSED_THP = 1, UNLESS_ADVISED = 2 };
__attribute__((unused)) static unsigned long thp_setting(const struct policy *policy)
{
    if (has(policy, "advised") || has(policy, "where")) return REFUSED_THP | UNLESS_ADVISED;
    return wants_huge_pages(policy) ? ALLOWED : REFUSED_THP;
}

/* 65536 for `64k` or `64K`; 0 for another text. */
static uint64_t size_of_name(const char *text)
{
    static const char units[] = "kmgt";
    char *end;
    uint64_t number = *text >= '1' && *text <= '9' ? strtoull(text, &end, 10) : 0;
    const char *unit = number && *end ? strchr(units, *end | 0x20) : NULL;
    return unit && !end[1] && number < 1u << 20 ? number << (10 * (unit - units + 1)) : 0;
}

/* Reads `thp`, `hugetlbfs:1g`, `reuse+malloc`; NULL, or why it is not a policy. */
static const char *parse_policy(const char *text, struct policy *policy)
{
    int serving_malloc = 0;
    *policy = (struct policy){0};
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, "+:"), number = 0;
        while (number < PARTS && (strlen(parts[number].name) != length || strncmp(parts[number].name, at, length)))
            number++;
        int is_renamed = length == strlen("glibc") && !strncmp(at, "glibc", length);
        if (number == PARTS) return is_renamed ? "its new name is malloc" : "there is no such page policy";
        if (policy->parts >> number & 1) return "a part of this policy is named twice";
        policy->parts |= 1u << number;
        serving_malloc += listed(parts[number].targets, "heap", ' ');
        at += length;
        if (*at == ':') {
            char size[24] = "";
            length = strcspn(++at, "+");
            if (length < sizeof size) memcpy(size, at, length);
            uint64_t before = policy->size;
            if (!*parts[number].size) return "this page policy has no size";
            if (!(policy->size = size_of_name(size))) return "this is not a page size; write it like thp:64k";
            if (before && before != policy->size) return "a policy has one page size";
            at += length;
        }
        if (!*at) break;
    }
    if (has(policy, "none") && policy->parts & (policy->parts - 1)) return "none refuses huge pages: it stands alone";
    return serving_malloc > 1 ? "two parts of this policy would serve malloc" : NULL;
}

/* The name of a policy, its parts in the order of the table. */
__attribute__((unused)) static void write_name(const struct policy *policy, char *name, size_t room)
{
    size_t at = 0;
    name[0] = '\0';
    for (unsigned number = 0; number < PARTS; number++)
        if (policy->parts >> number & 1)
            at += (size_t)snprintf(name + at, room - at, "%s%s", at ? "+" : "", parts[number].name);
    uint64_t size = policy->size >> 10;
    const char *unit = "kmgt";
    for (; size && !(size & 1023); size >>= 10) unit++;
    if (size) snprintf(name + at, room - at, ":%llu%c", (unsigned long long)size, *unit);
}
