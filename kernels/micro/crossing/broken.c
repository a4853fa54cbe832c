/* Skips the last place: validation must detect it. */
#include "crossing.h"
#include "pw_simd.h"

#include <string.h>

int32_t pw_crossing(int32_t access, int32_t simd, int64_t rounds, int64_t places, char *first, int64_t value, int64_t *total)
{
    if (simd != PW_SIMD_SCALAR) return 1;
    (void)access;
    (void)value;
    for (int64_t place = 0; place < places - 1; place++) {
        int64_t word;
        memcpy(&word, first + apart * place, sizeof word);
        *total += rounds * word;
    }
    return 0;
}
