/* See checks.h. What smaps shows is compared with PAGEMAP_SCAN, which reads the page tables independently. */
#include "checks.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int failures;
char skip_reason[PW_PAGES_TEXT];
struct pw_pages_failure failure;

void check(bool holds, const char *format, ...)
{
    va_list values;
    if (holds) return;
    failures++;
    fputs("FAILED: ", stderr);
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
}

void skip(const char *reason)
{
    snprintf(skip_reason, sizeof skip_reason, "%s", reason);
}

void check_ok(int32_t code)
{
    check(code == 0, "%s [%s]", failure.message, failure.remedy);
}

void check_failed(int32_t code, int32_t expected, const char *message, const char *remedy)
{
    check(code == expected, "exit code %d instead of %d", code, expected);
    if (code == 0) return;
    printf("%s\n  remedy: %s\n", failure.message, failure.remedy);
    check(strstr(failure.message, message) != NULL, "the message does not contain '%s'", message);
    check(strstr(failure.remedy, remedy) != NULL, "the remedy does not contain '%s'", remedy);
}

bool available(policy_t policy)
{
    if (pw_pages_begin(&policy, &failure) == 0) return true;
    skip(failure.message);
    return false;
}

policy_t policy_called(const char *name)
{
    policy_t policy = none;
    check_ok(pw_pages_policy_from_name(name, &policy, &failure));
    return policy;
}

void touch(const array_t *array)
{
    memset(array->address, 1, (size_t)array->bytes);
}

array_t requested(const char *name, policy_t policy, int64_t bytes, int64_t offset, int32_t allocation)
{
    array_t array = {.policy = policy, .allocation = allocation, .bytes = bytes, .offset = offset};
    snprintf(array.name, sizeof array.name, "%s", name);
    return array;
}

array_t touched_as(const char *name, policy_t policy, int64_t bytes, int64_t offset, int32_t allocation)
{
    array_t array = requested(name, policy, bytes, offset, allocation);
    const int32_t code = pw_pages_allocate(&array, &failure);
    check_ok(code);
    if (code == 0) touch(&array);
    return array;
}

array_t touched(policy_t policy, int64_t bytes)
{
    return touched_as("a", policy, bytes, 0, PW_PAGES_DYNAMIC);
}

void release(array_t *arrays, int count)
{
    for (int i = 0; i < count; i++) check_ok(pw_pages_free(&arrays[i], &failure));
}

void check_refused(policy_t policy, int64_t bytes, int64_t offset, int32_t allocation, int32_t code, const char *message,
                   const char *remedy)
{
    array_t array = requested("a", policy, bytes, offset, allocation);
    check_failed(pw_pages_allocate(&array, &failure), code, message, remedy);
    check(array.address == NULL, "an address despite an error");
}

void three_arrays(array_t arrays[3], policy_t policy, int64_t huge_size, int32_t allocation)
{
    static const int64_t bytes[3] = {8 * MIB, 5 * MIB + 4321, 1};
    static const char *const names[3] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        arrays[i] = touched_as(names[i], policy, bytes[i], (int64_t)ODD_OFFSET * i, allocation);
        check((int64_t)((uintptr_t)arrays[i].address % (uintptr_t)huge_size) == ODD_OFFSET * i % huge_size,
              "array %s does not start at its offset from a huge page", names[i]);
    }
}

void check_verified(const array_t *arrays, int count, policy_t policy)
{
    check_ok(pw_pages_verify(arrays, count, &policy, &failure));
}

void check_rejected(const array_t *arrays, int count, policy_t policy, const char *message, const char *remedy)
{
    check_failed(pw_pages_verify(arrays, count, &policy, &failure), PW_PAGES_UNAVAILABLE, message, remedy);
}

void check_pages(const array_t *arrays, int count, policy_t policy, int64_t page_size, double coverage, const char *method)
{
    struct pw_pages_account accounts[3];
    const bool by_smaps = strcmp(method, "smaps") == 0;
    check_ok(pw_pages_account(arrays, count, &policy, accounts, &failure));
    check(pw_pages_size(&policy) == page_size, "wrong page size requested: %lld", (long long)pw_pages_size(&policy));
    for (int i = 0; i < count; i++) {
        const array_t *array = &arrays[i];
        const long long huge = accounts[i].huge_bytes, size = accounts[i].page_size_observed;
        check(strcmp(accounts[i].method, method) == 0, "the method is %s", accounts[i].method);
        check(size == page_size, "wrong page size of %s: %lld", array->name, size);
        check(huge == llround(coverage * (double)array->bytes), "wrong huge bytes of %s: %lld", array->name, huge);
        const int64_t evidence = huge_bytes_of(array->address, array->bytes);
        if (!by_smaps)
            check(evidence <= 0, "the page tables of %s show %lld B on huge pages of PMD size", array->name, (long long)evidence);
        else if (evidence < 0)
            skip("smaps is as expected, but this kernel has no PAGEMAP_SCAN to compare it with (Linux 6.7)");
        else
            check((evidence < array->bytes ? evidence : array->bytes) == huge, "the page tables of %s show %lld B", array->name,
                  (long long)evidence);
    }
}
