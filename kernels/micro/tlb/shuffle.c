/* See infer.h. */
#include "infer.h"

/* splitmix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void pw_tlb_shuffle(uint64_t *state, int32_t n, int32_t *number)
{
    for (int32_t i = n - 1; i > 0; i--) {
        const int32_t k = (int32_t)(next_random(state) % (uint64_t)(i + 1)), kept = number[i];
        number[i] = number[k];
        number[k] = kept;
    }
}
