/* Cases of the page tests: names of policies, and arrays, dynamic and static, whatever their pages. */
#define _GNU_SOURCE
#include "checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The policy of one name has another name, too. */
static void check_name(const char *name, const char *other)
{
    char text[PW_PAGES_NAME + 1];
    const policy_t policy = policy_called(name), again = policy_called(other);
    pw_pages_policy_name(&policy, text);
    check(strcmp(text, other) == 0, "%s is called %s", name, text);
    check(policy.kind == again.kind && policy.page_size == again.page_size, "%s is not %s", name, other);
}

void policy_names(void)
{
    static const char *const wrong[] = {"huge", "", "thp:", "thp:3k", "none:4k", "hugetlbfs:64", "hugetlbfs:2M2", "hugetlbfs:2MB",
                                        "hugetlbfs:-1g", "hugetlbfs:0g", "hugetlbfs:2", "thp:9999999t"};
    static const struct {
        policy_t policy;
        const char *name;
    } named[] = {{{PW_PAGES_THP, 64 * KIB}, "thp:64k"},
                 {{PW_PAGES_THP, 1536 * KIB}, "thp:1536k"},
                 {{PW_PAGES_HUGETLBFS, 1024 * MIB}, "hugetlbfs:1g"},
                 {{7, 0}, ""}};
    char names[PW_PAGES_TEXT], quoted[64];
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        pw_pages_policy_name(&named[i].policy, names);
        check(strcmp(names, named[i].name) == 0, "'%s' is called '%s'", named[i].name, names);
    }
    pw_pages_names(names, sizeof names);
    puts(names);
    check(argument[0][0] == '\0' || strcmp(names, argument[0]) == 0, "the policies are %s", names);
    check(strncmp(names, "none|thp|", 9) == 0 && strstr(names, "|hugetlbfs") != NULL, "a policy is missing");
    const bool has_1g = strstr(names, "hugetlbfs:1g") != NULL;
    char *rest = names;
    for (char *name = strtok_r(names, "|", &rest); name != NULL; name = strtok_r(NULL, "|", &rest)) check_name(name, name);
    if (has_1g) {
        check_name("hugetlbfs:1G", "hugetlbfs:1g");
        check_name("hugetlbfs:1024m", "hugetlbfs:1g");
        check_name("hugetlbfs:1048576K", "hugetlbfs:1g");
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        policy_t policy;
        snprintf(quoted, sizeof quoted, "'%s'", wrong[i]);
        check_failed(pw_pages_policy_from_name(wrong[i], &policy, &failure), PW_PAGES_USAGE, quoted, "none, thp or hugetlbfs");
    }
    check_failed(pw_pages_begin(&named[3].policy, &failure), PW_PAGES_USAGE, "7", "none, thp or hugetlbfs");
}

void senseless_sizes(void)
{
    static const int64_t bytes[] = {0, -8, 8, INT64_MAX, 8}, offset[] = {0, 0, -8, 0, INT64_MAX};
    char number[32];
    for (int32_t kind = PW_PAGES_NONE; kind <= PW_PAGES_HUGETLBFS; kind++)
        for (int i = 0; i < 5; i++) {
            snprintf(number, sizeof number, "%lld", (long long)bytes[i]);
            check_refused((policy_t){kind, 0}, bytes[i], offset[i], DYNAMIC, PW_PAGES_USAGE, number, "at least one byte");
        }
}

/* No page size is observed for untouched memory, and mapping more than 4 GiB of it costs nothing. */
void untouched(void)
{
    const int64_t bytes = 4096 * (int64_t)MIB + 1;
    for (int32_t kind = PW_PAGES_NONE; kind <= PW_PAGES_THP; kind++) {
        array_t array = requested("a", (policy_t){kind, 0}, bytes, 8 * MIB, DYNAMIC);
        struct pw_pages_account account;
        check_ok(pw_pages_allocate(&array, &failure));
        check_ok(pw_pages_account(&array, 1, &array.policy, &account, &failure));
        check(account.page_size_observed == 0 && account.huge_bytes == 0, "a page size of untouched memory");
        if (kind == PW_PAGES_THP) check_rejected(&array, 1, thp, "4194305 of 4194305 KiB", "fragmented");
        release(&array, 1);
    }
}

void freed(void)
{
    for (int32_t kind = PW_PAGES_NONE; kind <= PW_PAGES_THP; kind++) {
        array_t array = touched((policy_t){kind, 0}, MIB);
        char *const address = array.address;
        check(is_accessible(address, MIB), "the array cannot be read");
        check(!is_accessible(address - 1, 1), "no guard before the array");
        for (int i = 0; i < 2; i++) { /* freeing twice is not an error */
            release(&array, 1);
            check(!is_accessible(address, MIB), "the memory is still mapped");
            check(array.address == NULL && array.bytes == 0, "the array is not reset");
        }
    }
}

/* Static arrays get the pages of a policy as dynamic ones do, repeatedly. */
void static_arrays(void)
{
    array_t arrays[3];
    const char *first = NULL;
    const int64_t huge = thp_size();
    for (int32_t kind = PW_PAGES_THP; kind >= PW_PAGES_NONE; kind--) { /* none disables huge pages for the process permanently */
        const policy_t policy = {kind, 0};
        if (!available(policy)) continue;
        three_arrays(arrays, policy, huge < 2 * MIB ? huge : 2 * MIB, STATIC);
        if (first == NULL) first = arrays[0].address;
        check(arrays[0].address == first, "freed static memory is not used again");
        check(labs(arrays[2].address - first) < 1024L * MIB, "the arrays are in different memories");
        check_verified(arrays, 3, policy);
        check_pages(arrays, 3, policy, kind == PW_PAGES_THP ? huge : base_page(), kind == PW_PAGES_THP, "smaps");
        for (int i = 0; i < 3; i++) check(!is_accessible(arrays[i].address - 1 - arrays[i].offset, 1), "no guard");
        release(arrays, 3);
    }
}

void static_too_large(void)
{
    static const int64_t large[] = {600L * MIB, 600L * MIB}, small[] = {300L * MIB, 300L * MIB};
    check_failed(pw_pages_require(&none, STATIC, large, 2, &failure), PW_PAGES_USAGE, "1024", "--allocation dynamic");
    check_ok(pw_pages_require(&none, STATIC, small, 2, &failure));
    check_refused(none, 1024L * MIB, 0, STATIC, PW_PAGES_USAGE, "1024", "--allocation dynamic");
}

void static_pool(void)
{
    static const int64_t bytes = MIB;
    check_failed(pw_pages_require(&pool, STATIC, &bytes, 1, &failure), PW_PAGES_UNAVAILABLE, "libhugetlbfs", "--allocation dynamic");
    check_refused(pool, MIB, 0, STATIC, PW_PAGES_UNAVAILABLE, "libhugetlbfs", "--allocation dynamic");
}
