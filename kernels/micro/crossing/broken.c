/* Skips the last place, or reads the first half of the places twice: validation must detect each. */
#include "crossing.h"
#include "pw_broken.h"
#include "pw_simd.h"

int32_t pw_crossing(int32_t access, int32_t simd, int64_t rounds, int64_t places, void *first, int64_t value, int64_t *total)
{
    if (simd != PW_SIMD_SCALAR) return 1;
    (void)access;
    (void)value;
    const int repeats = pw_broken_is("repeat");
    uint64_t sum = 0;
    for (int64_t place = 0; place < places - !repeats; place++) {
        uint64_t word;
        memcpy(&word, (const char *)first + apart * (repeats ? place % (places / 2) : place), sizeof word);
        sum += word;
    }
    *total = (int64_t)((uint64_t)*total + (uint64_t)rounds * sum);
    return 0;
}
