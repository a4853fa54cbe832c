/* For deliberately wrong timed code: validation must also detect results that are not numbers. */
#ifndef PAGEWISE_BROKEN_H
#define PAGEWISE_BROKEN_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Whether the environment variable PAGEWISE_BROKEN requests this fault. */
static inline int pw_broken_is(const char *fault)
{
    const char *value = getenv("PAGEWISE_BROKEN");
    return value != NULL && strcmp(value, fault) == 0;
}

/* Leave NaN or Inf, as the environment variable PAGEWISE_BROKEN requests, in a result, a number of 8 or 4 bytes. As bits,
 * because compilers may assume that there are no such numbers. */
static inline void pw_spoil(void *result, size_t bytes)
{
    const int nan = pw_broken_is("nan");
    if (!nan && !pw_broken_is("inf")) return;
    const uint64_t wide = nan ? UINT64_C(0x7ff8000000000000) : UINT64_C(0x7ff0000000000000);
    const uint32_t narrow = nan ? UINT32_C(0x7fc00000) : UINT32_C(0x7f800000);
    if (bytes == sizeof wide)
        memcpy(result, &wide, sizeof wide);
    else
        memcpy(result, &narrow, sizeof narrow);
}

#endif
