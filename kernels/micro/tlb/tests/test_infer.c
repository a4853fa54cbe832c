/* The inference against random TLBs of the simulator, whose every parameter is known. */
#include "expect.h"
#include "infer.h"
#include "tlb.h"

#include <math.h>
#include <stdlib.h>

enum { geometries = 20, most_pages = 8192, warm_up = 2 };

static uint64_t state = 20;

/* A number from..to: xorshift64* (Vigna 2016). */
static uint32_t number(uint32_t from, uint32_t to)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return from + (uint32_t)((state * UINT64_C(2685821657736338717) >> 33) % (to - from + 1));
}

struct simulated {
    struct pw_geometry geometry;
    unsigned fold; /* bits of the page number whose XOR with as many higher ones is the index; 0: a plain index */
    double noise;
};

/* A load takes 2 ns, 3 ns more for each TLB level that it misses, and 5 ns times the levels more for the walk. */
static double latency(void *context, int64_t stride, bool packed, int32_t n, const int32_t *page)
{
    const struct simulated *machine = context;
    const uint32_t levels = machine->geometry.n_tlb_levels;
    double ns = 2;
    struct pw_tlb tlb;
    (void)stride;
    if (!packed && pw_tlb_open(&tlb, &machine->geometry)) {
        uint64_t missed = 0;
        for (int cycle = 0; cycle < 2 * warm_up; cycle++)
            for (int32_t i = 0; i < n; i++) {
                uint32_t refilled;
                const uint64_t folded = (uint64_t)page[i] >> machine->fold & ((1U << machine->fold) - 1);
                const uint32_t level = pw_tlb_access(&tlb, PW_BASE, (uint64_t)page[i] ^ folded, &refilled);
                if (cycle >= warm_up) missed += 3 * level + (level == levels ? 5 * levels : 0);
            }
        pw_tlb_close(&tlb);
        ns += (double)missed / ((double)n * (double)warm_up);
    }
    /* Other programs make a measurement slower, and one in eight much slower. */
    return ns * (1 + machine->noise * number(0, 100) / 100 * (number(0, 7) == 0 ? 20 : 1));
}

static struct simulated random_machine(void)
{
    struct simulated machine = {.geometry = {.n_tlb_levels = number(1, pw_tlb_levels)}};
    uint32_t least = 8;
    for (uint32_t level = 0; level < machine.geometry.n_tlb_levels; level++) {
        struct pw_tlb_geometry *one = &machine.geometry.tlb[level][0];
        uint32_t sets, most = level == 0 ? 96 : 2048;
        if (level == 0 && machine.geometry.n_tlb_levels == 3) most = 32;
        if (level == 1 && machine.geometry.n_tlb_levels == 3) most = 256;
        do {
            sets = number(0, 2) == 0 && level == 0 ? 1 : 1U << number(1, 7);
            one->ways = number(2, sets == 1 ? most : 16);
            one->entries = sets * one->ways;
        } while (one->entries < least || one->entries > most);
        least = 4 * one->entries;
        one->replacement = number(0, 1) ? PW_FIFO : PW_LRU;
        one->holds[PW_BASE] = true;
        one->holds[PW_HUGE] = number(0, 1);
        machine.geometry.n_tlbs[level] = 1;
        while (machine.geometry.n_tlb_levels == 1 && 1U << machine.fold < sets) machine.fold++;
        if (machine.fold < 3) machine.fold = 0;
    }
    return machine;
}

/* The number of parameters that are right; adds those that there are. */
static int right(const struct simulated *simulated, int32_t repetitions, int *of)
{
    const struct pw_tlb_machine machine = {.latency = latency,
                                           .context = (void *)(uintptr_t)simulated,
                                           .stride = 4096,
                                           .most_pages = most_pages,
                                           .repetitions = repetitions,
                                           .seed = number(1, 1000)};
    struct pw_tlb_estimate estimate;
    const int32_t levels = (int32_t)simulated->geometry.n_tlb_levels;
    EXPECT(pw_tlb_infer(&machine, &estimate));
    int count = estimate.levels == levels;
    for (int32_t level = 0; level < levels; level++) {
        const struct pw_tlb_geometry *is = &simulated->geometry.tlb[level][0];
        const struct pw_tlb_level *seen = &estimate.level[level];
        const double cost = level + 1 < levels ? 3 : 3 + 5 * levels;
        const int parts[] = {seen->entries == (int32_t)is->entries, seen->ways == (int32_t)is->ways,
                             seen->replacement == (is->replacement == PW_LRU ? pw_tlb_lru : pw_tlb_fifo),
                             fabs(seen->cost_ns - cost) < 0.05 * cost};
        for (int i = 0; i < 4; i++) count += level < estimate.levels && parts[i];
        printf("level %d of %d: %u entries, %u ways, %s, %.0f ns; found %d (%.2f), %d (%.2f), %d (%.2f), %.2f (%.2f)\n", level + 1,
               levels, is->entries, is->ways, is->replacement == PW_LRU ? "lru" : "fifo", cost, seen->entries,
               seen->entries_confidence, seen->ways, seen->ways_confidence, seen->replacement, seen->replacement_confidence,
               seen->cost_ns, seen->cost_confidence);
    }
    *of += 1 + 4 * levels;
    return count;
}

int main(void)
{
    int exact = 0, noisy = 0, of = 0, of_noisy = 0;
    for (int i = 0; i < geometries; i++) {
        struct simulated machine = random_machine();
        exact += right(&machine, 1, &of);
        machine.noise = 0.01;
        if (i < 5) noisy += right(&machine, 5, &of_noisy);
    }
    printf("right: %d of %d parameters; with noise, %d of %d\n", exact, of, noisy, of_noisy);
    EXPECT(exact >= 0.95 * of);
    EXPECT(noisy >= 0.95 * of_noisy);
    return reported_faults();
}
