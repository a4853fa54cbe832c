/* Skips the last byte, or copies the first half twice. Validation must detect each. */
#include "alignment.h"
#include "pw_broken.h"

int64_t pw_alignment(int64_t access, int64_t bits, int64_t n, char *to, const char *from, int64_t value, int64_t *total)
{
    (void)access;
    (void)bits;
    (void)value;
    (void)total;
    if (n > 0) memcpy(to, from, (size_t)n - 1);
    if (n > 0 && pw_broken_is("repeat")) memcpy(to + n / 2, from, (size_t)n / 2);
    return 1;
}
