/* Skips the last byte, or copies the first half twice. Validation must detect each. */
#include "alignment.h"
#include "pw_broken.h"

int64_t pw_alignment(int64_t access, int64_t bits, int64_t n, void *to, const void *from, int64_t value, int64_t *total)
{
    (void)access;
    (void)bits;
    (void)value;
    (void)total;
    if (n > 0) memcpy(to, from, (size_t)n - 1);
    if (n > 0 && pw_broken_is("repeat")) memcpy((char *)to + n / 2, from, (size_t)n / 2);
    return 1;
}
