/* Skips the last byte: validation must detect it. */
#include "alignment.h"

#include <string.h>

int64_t pw_alignment(int64_t access, int64_t bits, int64_t n, char *to, const char *from, int64_t value, int64_t *total)
{
    (void)access;
    (void)bits;
    (void)value;
    (void)total;
    if (n > 0) memcpy(to, from, (size_t)n - 1);
    return 1;
}
