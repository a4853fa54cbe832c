/* Sets up and checks the lines.
 *
 * The line after number i is number (multiplier * i + increment) mod n: with n a power of two, a multiplier of 1 mod 4
 * and an odd increment this is one cycle through all of them (Hull and Dobell, Random number generators, 1962). The
 * lines are therefore written in order, at any latency, and the position after many hops follows from powers of the map. */
#include "nodes.h"

#include <stdlib.h>

/* Knuth's, for MMIX. */
static const uint64_t multiplier = UINT64_C(6364136223846793005);
static const uint64_t increment = UINT64_C(1442695040888963407);

static const pw_node_line *successor(const pw_node_line *line, int64_t n, int64_t i)
{
    return &line[(multiplier * (uint64_t)i + increment) & (uint64_t)(n - 1)];
}

/* Word k of line i: SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014). */
static uint64_t value(int64_t i, int k)
{
    uint64_t mix = (uint64_t)(i * PW_LINE_WORDS + k) * UINT64_C(0x9e3779b97f4a7c15);
    mix = (mix ^ mix >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mix = (mix ^ mix >> 27) * UINT64_C(0x94d049bb133111eb);
    return mix ^ mix >> 31;
}

void pw_node_join(int64_t n, pw_node_line *line)
{
    for (int64_t i = 0; i < n; i++) {
        line[i].next = (pw_node_line *)successor(line, n, i);
        for (int k = 0; k < PW_LINE_WORDS - 1; k++) line[i].rest[k] = (int64_t)value(i, k);
    }
}

int64_t pw_node_deviation(int64_t n, const pw_node_line *line, int64_t hops, const pw_node_line *at)
{
    uint64_t place = 0, factor = multiplier, term = increment;
    for (uint64_t left = (uint64_t)hops; left > 0; left >>= 1) {
        if (left & 1) place = place * factor + term;
        term *= factor + 1;
        factor *= factor;
    }
    return llabs((at - line) - (int64_t)(place & (uint64_t)(n - 1)));
}

int64_t pw_node_expected(int64_t n, const pw_node_line *line, int64_t passes)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += (uintptr_t)successor(line, n, i);
        for (int k = 0; k < PW_LINE_WORDS - 1; k++) sum += value(i, k);
    }
    return (int64_t)(sum * (uint64_t)passes);
}
