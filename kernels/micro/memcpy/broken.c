/* Copies that skip the last element of each block: validation must detect it. */
#include "copy.h"
#include "pw_broken.h"

int64_t pw_copy(int64_t way, int64_t copies, int64_t n, int64_t place, int64_t stride, int64_t places, double *target,
                const double *source)
{
    (void)way;
    for (int64_t i = 0; i < copies; i++) {
        for (int64_t k = 0; k < n - 1; k++) target[place * n + k] = source[place * n + k];
        pw_spoil(target + place * n, sizeof *target);
        place = (place + stride) & (places - 1);
    }
    return place;
}
