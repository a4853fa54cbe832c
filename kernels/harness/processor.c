#include "processor.h"
#include "pw_prefetch_plan.h"

#if defined(__ARM_FEATURE_SVE)
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
#endif

int64_t pw_zero_bytes(void)
{
#if defined(__aarch64__)
    uint64_t dczid;
    __asm__("mrs %0, dczid_el0" : "=r"(dczid));
    /* Bit 4, DZP: prohibited. Bits 0 to 3, BS: the logarithm of 4-byte words. */
    return dczid & 16 ? 0 : INT64_C(4) << (dczid & 15);
#else
    return 0;
#endif
}

int32_t pw_sve_built(void)
{
#if defined(__ARM_FEATURE_SVE)
    return 1;
#else
    return 0;
#endif
}

int32_t pw_streams_followed(void)
{
    return PW_FOLLOWED;
}

int64_t pw_sve_bits_built(void)
{
#if defined(__ARM_FEATURE_SVE_BITS)
    return __ARM_FEATURE_SVE_BITS;
#else
    return 0;
#endif
}

int64_t pw_sve_bits(void)
{
#if defined(__ARM_FEATURE_SVE)
    int64_t bytes;
    __asm__("rdvl %0, #1" : "=r"(bytes));
    return 8 * bytes;
#else
    return 0;
#endif
}

#if defined(__ARM_FEATURE_SVE)
/* The arguments of this process as it was started, separated by zero bytes; NULL if they cannot be read. */
static char **arguments_of_process(void)
{
    enum { most_bytes = 1 << 17, most_words = 4096 };
    static char text[most_bytes];
    static char *words[most_words + 1];
    FILE *file = fopen("/proc/self/cmdline", "rb");
    if (!file) return NULL;
    const size_t bytes = fread(text, 1, sizeof text - 1, file);
    const int is_whole = bytes < sizeof text - 1 && !ferror(file);
    (void)fclose(file);
    size_t count = 0;
    for (size_t i = 0; i < bytes && count < most_words; i++)
        if (i == 0 || !text[i - 1]) words[count++] = text + i;
    return is_whole && count < most_words ? words : NULL;
}
#endif

/* Before main, because MPI cannot begin twice in a process. What is wrong is reported by the check in pw_processor.f90. */
#if defined(__ARM_FEATURE_SVE)
__attribute__((constructor)) static void restart_with_selected_length(void)
{
    static const char again[] = "PAGEWISE_SVE_RESTARTED"; /* once only, whatever length the second start has */
    const char *const wanted = getenv("PAGEWISE_SVE_BITS");
    const unsigned long length = wanted ? strtoul(wanted, NULL, 10) / 8 : 0;
    if (!length || 8 * (int64_t)length == pw_sve_bits() || getenv(again) || setenv(again, "1", 1)) return;
    char **const words = arguments_of_process();
    if (!words) return;
    const int given = prctl(PR_SVE_SET_VL, length | PR_SVE_SET_VL_ONEXEC | PR_SVE_VL_INHERIT, 0, 0, 0);
    if (given >= 0 && ((unsigned)given & PR_SVE_VL_LEN_MASK) == length) (void)execv("/proc/self/exe", words);
}
#endif
