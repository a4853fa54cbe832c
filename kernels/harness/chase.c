/* Sets up the cycle of a chase. */
#include "pw_chase.h"

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

/* The numbers from..from+n-1 in random order (Fisher and Yates), the first `kept` of them in place. */
static void shuffled(uint64_t *state, int64_t from, int64_t n, int64_t kept, int64_t *number)
{
    for (int64_t i = 0; i < n; i++) number[i] = from + i;
    for (int64_t i = n - 1; i > kept; i--) {
        int64_t k = kept + below(state, i - kept + 1);
        int64_t swapped = number[i];
        number[i] = number[k];
        number[k] = swapped;
    }
}

static void random_order(int64_t n, int64_t local, uint64_t state, int64_t *order)
{
    int64_t groups = (n + local - 1) / local;
    int64_t *group = order + n;
    shuffled(&state, 0, groups, 1, group);
    for (int64_t g = 0; g < groups; g++) {
        int64_t first = group[g] * local;
        int64_t lines = n - first < local ? n - first : local;
        shuffled(&state, first, lines, first == 0, order);
        order += lines;
    }
}

static void strided_order(int64_t n, int64_t step, int64_t *order)
{
    for (int64_t start = 0; start < step && start < n; start++)
        for (int64_t i = start; i < n; i += step) *order++ = i;
}

void pw_chase_join(int64_t n, pw_link *line, int64_t step, int64_t local, int64_t seed, int64_t *order)
{
    if (step > 0)
        strided_order(n, step, order);
    else
        random_order(n, local, (uint64_t)seed, order);
    for (int64_t i = 0; i < n; i++) {
        line[order[i]].next = &line[order[i + 1 < n ? i + 1 : 0]];
        line[order[i]].place = i;
    }
}

void pw_chase_start(int64_t n, pw_link *line, const int64_t *order, int64_t chains, pw_link **at)
{
    for (int64_t chain = 0; chain < chains; chain++) at[chain] = &line[order[n * chain / chains]];
}

int64_t pw_chase_place(const pw_link *link)
{
    return link->place;
}
