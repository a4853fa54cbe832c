/* Making the cycle of pointer_chase. */
#include "chase.h"

/* splitmix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

__extension__ typedef unsigned __int128 wide;

/* A number below n, from the upper bits of a product (Lemire 2019; the bias is below n / 2^64). */
static int64_t below(uint64_t *state, int64_t n)
{
    return (int64_t)(((wide)next_random(state) * (uint64_t)n) >> 64);
}

void pw_chase_join(int64_t n, pw_link *line, int64_t seed, int64_t *order)
{
    uint64_t state = (uint64_t)seed;
    for (int64_t i = 0; i < n; i++) order[i] = i;
    for (int64_t i = n - 1; i > 1; i--) { /* shuffle all but the first, where the cycle starts (Fisher and Yates) */
        int64_t k = 1 + below(&state, i);
        int64_t swapped = order[i];
        order[i] = order[k];
        order[k] = swapped;
    }
    for (int64_t i = 0; i < n; i++) {
        line[order[i]].next = &line[order[i + 1 < n ? i + 1 : 0]];
        line[order[i]].place = i;
    }
}

int64_t pw_chase_place(const pw_link *link)
{
    return link->place;
}
