/* See infer.h. Source: Saavedra and Smith, Measuring cache and TLB performance and their effect on benchmark runtimes (1995).
 *
 * In random cyclic chases through n adjacent pages, each page hits a level of E entries in S sets up to n = E, and misses it
 * from n = E + S on, under LRU and FIFO. Steps of this shape are fitted to latencies over n. Then each step is searched exactly.
 * Sets: pages whose number has an even number of ones under a mask of bits fill half of the sets, if this parity is part of
 * the set's number, else all of them. Masks of one bit find plain indices; of bits 0 and h, indices XORed from parts of h bits. */
#include "infer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { batches = 5, most_points = 80, fan = 7, per_octave = 4, most_bits = 16 };

/* A chase, and by batch the nanoseconds per load that it takes longer than a packed one. */
struct point {
    int32_t n, *page;
    double extra[batches], packed;
};

struct points {
    const struct pw_tlb_machine *machine;
    uint64_t random;
    int count;
    bool exhausted;
    struct point point[most_points];
};

/* A step of the latency: at most `entries` adjacent pages hit, in `sets` sets. */
struct step {
    double entries, sets, cost; /* entries first: compare_numbers sorts steps */
};

static struct point *add_point(struct points *points, int32_t n)
{
    struct point *point = &points->point[points->count++];
    point->n = n;
    point->page = malloc((size_t)n * sizeof *point->page);
    points->exhausted |= point->page == NULL;
    return point;
}

/* The first n pages, or as many as there are, whose number has even parity under the mask, in random order. */
static void add_pages(struct points *points, int32_t n, uint32_t mask)
{
    struct point *point = add_point(points, n);
    if (points->exhausted) return;
    n = 0;
    for (int32_t page = 0; n < point->n && page < points->machine->most_pages; page++)
        if (__builtin_parity((uint32_t)page & mask) == 0) point->page[n++] = page;
    point->n = n;
    pw_tlb_shuffle(&points->random, n, point->page);
}

/* Twice: all but one page of each set, then another page of each set. Of w ways, one access in w misses under LRU; under FIFO, w + 1
 * in 2 w, because the second other page evicts what is accessed next. */
static void add_reuse(struct points *points, int32_t entries, int32_t sets)
{
    const int32_t hot = entries - sets;
    struct point *point = add_point(points, 2 * entries);
    if (points->exhausted) return;
    for (int round = 0; round < 2; round++) {
        int32_t *page = point->page + round * entries;
        for (int32_t i = 0; i < entries; i++) page[i] = i < hot ? i : i + round * sets;
        pw_tlb_shuffle(&points->random, hot, page);
        pw_tlb_shuffle(&points->random, sets, page + hot);
    }
}

static void clear(struct points *points)
{
    for (int i = 0; i < points->count; i++) free(points->point[i].page);
    points->count = 0;
}

/* Measure all points; within a repetition, in random order. */
static void measure(struct points *points)
{
    const struct pw_tlb_machine *machine = points->machine;
    int32_t order[most_points];
    if (points->exhausted) return;
    for (int i = 0; i < points->count; i++) order[i] = i;
    for (int batch = 0; batch < batches; batch++) {
        double least[2][most_points];
        for (int i = 0; i < points->count; i++) least[0][i] = least[1][i] = INFINITY;
        for (int repetition = 0; repetition < machine->repetitions; repetition++) {
            pw_tlb_shuffle(&points->random, points->count, order);
            for (int i = 0; i < points->count; i++) {
                const struct point *point = &points->point[order[i]];
                for (int packed = 0; packed < 2; packed++) {
                    const double ns = machine->latency(machine->context, machine->stride, packed, point->n, point->page);
                    least[packed][order[i]] = fmin(least[packed][order[i]], ns);
                }
            }
        }
        for (int i = 0; i < points->count; i++) {
            points->point[i].extra[batch] = least[0][i] - least[1][i];
            points->point[i].packed = least[1][i];
        }
    }
}

static double mean_of(const double *value)
{
    double sum = 0;
    for (int i = 0; i < batches; i++) sum += value[i];
    return sum / (double)batches;
}

/* The probability that the mean of values with this mean is above `threshold`: Student's t distribution with 4 degrees of
 * freedom, in closed form. */
static double probability_above(const double *value, double threshold)
{
    const double mean = mean_of(value);
    double squares = 0;
    for (int i = 0; i < batches; i++) squares += (value[i] - mean) * (value[i] - mean);
    const double error = sqrt(squares / (batches * (batches - 1)));
    if (error <= 0) return mean > threshold ? 1 : 0;
    const double t = (mean - threshold) / error, u = t * t / 4;
    return 0.5 + 0.375 * t / sqrt(1 + u) * (1 - u / (1 + u) / 3);
}

/* Points 0 and 1 are the latencies before and behind a step: the share of it that a point has, by batch. */
static void shares(const struct points *points, int i, double share[batches])
{
    for (int b = 0; b < batches; b++) {
        const double before = points->point[0].extra[b], behind = points->point[1].extra[b];
        share[b] = (points->point[i].extra[b] - before) / (behind > before ? behind - before : INFINITY);
    }
}

static double share_above(const struct points *points, int i, double threshold)
{
    double share[batches];
    shares(points, i, share);
    return probability_above(share, threshold);
}

/* The share of n adjacent pages that miss. */
static double missing(const struct step *step, double n)
{
    if (n <= step->entries) return 0;
    if (n >= step->entries + step->sets) return 1;
    return (n - step->entries) * (step->entries / step->sets + 1) / n;
}

/* Least squares, each point weighted by the inverse of its latency: sets the costs of the steps and returns the sum of squares;
 * infinity if a cost is not positive. */
static double fit_costs(const struct points *points, int count, struct step *step)
{
    double a[pw_tlb_levels + 1][pw_tlb_levels + 2] = {{0}}, squares = 0;
    double row[pw_tlb_levels + 2];
    const int size = count + 1;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < points->count; i++) {
            const struct point *point = &points->point[i];
            const double extra = mean_of(point->extra), weight = 1 / (fmax(extra, 0) + point->packed);
            row[0] = weight;
            for (int s = 0; s < count; s++) row[s + 1] = weight * missing(&step[s], point->n);
            row[size] = weight * extra;
            double residual = row[size];
            for (int j = 0; j < size; j++) {
                residual -= pass * row[j] * a[j][size];
                for (int k = 0; pass == 0 && k <= size; k++) a[j][k] += row[j] * row[k];
            }
            squares += pass * residual * residual;
        }
        if (pass == 1) break;
        for (int j = 0; j < size; j++) { /* Gauss and Jordan: the matrix is positive definite, or a step has no points */
            if (a[j][j] < 1e-12) return INFINITY;
            for (int k = size; k >= j; k--) a[j][k] /= a[j][j];
            for (int i = 0; i < size; i++)
                for (int k = size; i != j && k >= j; k--) a[i][k] -= a[i][j] * a[j][k];
        }
        for (int s = 0; s < count; s++)
            if ((step[s].cost = a[s + 1][size]) <= 0) return INFINITY;
    }
    return squares;
}

/* Move step `moved` to where the sum of squares is least, at a factor of at least two from the others. */
static double fit_step(const struct points *points, int count, struct step *step, int moved)
{
    static const double ways[] = {1, 2, 3, 4, 6, 8, 12, 16, 0};
    const double most = points->machine->most_pages / 4.0; /* later ones have no plateau behind them */
    struct step best = step[moved];
    double least = INFINITY;
    for (int i = 0; (step[moved].entries = 2 * exp2(i / 36.0)) <= most; i++) {
        const double entries = step[moved].entries;
        bool apart = true;
        for (int s = 0; s < count; s++)
            apart &= s == moved || fmax(entries / step[s].entries, step[s].entries / entries) >= 2;
        for (int w = 0; apart && w < (int)(sizeof ways / sizeof *ways); w++) {
            step[moved].sets = ways[w] > 0 ? entries / ways[w] : 1;
            const double squares = fit_costs(points, count, step);
            if (squares >= least) continue;
            least = squares;
            best = step[moved];
        }
    }
    step[moved] = best;
    return least < INFINITY ? fit_costs(points, count, step) : least;
}

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The variance of a point's relative latency, from the median difference of neighbours: most are on the same plateau. */
static double variance(const struct points *points)
{
    double difference[most_points];
    for (int i = 1; i < points->count; i++) {
        const struct point *point = &points->point[i];
        difference[i - 1] = fabs(mean_of(point->extra) - mean_of(point[-1].extra)) / (fmax(mean_of(point->extra), 0) + point->packed);
    }
    qsort(difference, (size_t)points->count - 1, sizeof *difference, compare_numbers);
    const double deviation = fmax(1.48 / sqrt(2) * difference[(points->count - 1) / 2], 1e-3);
    return deviation * deviation;
}

/* Number of steps by Schwarz's criterion (1978): each has three parameters. */
static int fit_steps(const struct points *points, struct step *step)
{
    const double v = variance(points), penalty = 3 * log(points->count);
    double before = fit_costs(points, 0, step);
    int count = 0;
    while (count < pw_tlb_levels) {
        struct step tried[pw_tlb_levels];
        memcpy(tried, step, sizeof tried);
        tried[count] = (struct step){0};
        double squares = fit_step(points, count + 1, tried, count);
        for (int pass = 0; pass < 2 && count > 0 && squares < INFINITY; pass++)
            for (int s = 0; s <= count; s++) squares = fit_step(points, count + 1, tried, s);
        if (!(before - squares > v * penalty)) break;
        before = squares;
        memcpy(step, tried, sizeof tried);
        count++;
    }
    qsort(step, (size_t)count, sizeof *step, compare_numbers); /* by entries */
    return count;
}

/* Points 0 and 1: before and behind step s. */
static void add_references(struct points *points, const struct step *step, int count, int s)
{
    double behind = fmax(1.25 * step[s].entries, step[s].entries + step[s].sets + 1);
    if (s + 1 < count) behind = fmin(behind, 0.75 * step[s + 1].entries);
    add_pages(points, (int32_t)fmax(1, 0.75 * step[s].entries), 0);
    add_pages(points, (int32_t)behind, 0);
}

/* The number of pages that miss by half: the last one below it. */
static int32_t half_way(struct points *points, const struct step *step, int count, int s)
{
    int32_t low = 0, high = 0;
    do {
        add_references(points, step, count, s);
        if (high == 0) low = points->point[0].n, high = points->point[1].n;
        const int32_t inside = high - low - 1 < fan ? high - low - 1 : fan;
        for (int i = 1; i <= inside; i++) add_pages(points, low + (int32_t)((int64_t)(high - low) * i / (inside + 1)), 0);
        measure(points);
        int least = points->count, best = 0;
        for (int cut = 0; cut <= inside; cut++) {
            int wrong = 0;
            for (int i = 0; i < inside; i++) wrong += (share_above(points, 2 + i, 0.5) > 0.5) != (i >= cut);
            if (wrong < least) least = wrong, best = cut;
        }
        const int32_t below = best > 0 ? points->point[1 + best].n : low;
        if (best < inside) high = points->point[2 + best].n;
        low = below;
        clear(points);
    } while (high - low > 1 && !points->exhausted);
    return low;
}

static int bits_of(int32_t n)
{
    int bits = 0;
    while (n >> (bits + 1) > 0) bits++;
    return bits;
}

/* The sets of a level that misses by half at `half` pages: a power of two. */
static int32_t find_sets(struct points *points, const struct step *step, int count, int s, int32_t half, struct pw_tlb_level *level)
{
    double halves[2][most_bits + 1] = {{0}};
    const int32_t n = (int32_t)(0.8 * half);
    int bits = bits_of(half), plain = 0, folded = 0;
    if (bits > most_bits) bits = most_bits;
    add_references(points, step, count, s);
    for (int bit = 0; bit < bits; bit++) add_pages(points, n, 1U << bit);
    for (int bit = 1; bit <= bits; bit++) add_pages(points, n, 1U | 1U << bit);
    measure(points);
    for (int bit = 0; bit < bits; bit++) halves[0][bit] = share_above(points, 2 + bit, 0.5);
    for (int bit = 1; bit <= bits; bit++) halves[1][bit] = share_above(points, 1 + bits + bit, 0.5);
    clear(points);
    double confidence = 1;
    while (plain < bits && halves[0][plain] > 0.5) confidence *= halves[0][plain++];
    if (plain < bits) confidence *= 1 - halves[0][plain];
    for (int bit = 1; plain == 0 && bit <= bits; bit++)
        if (halves[1][bit] > 0.5) folded = bit;
    for (int bit = folded > 0 ? folded : 1; plain == 0 && bit <= bits; bit++)
        confidence *= bit == folded ? halves[1][bit] : 1 - halves[1][bit];
    level->ways_confidence = confidence;
    level->hashed = folded > 0;
    return 1 << (plain + folded);
}

/* The number near `ways` with the fewest significant bits, which is the likeliest one to be built. */
static int32_t round_ways(int32_t ways)
{
    const int32_t near = ways < 64 ? 1 : ways / 32;
    int32_t round = ways;
    for (int32_t w = ways > near + 1 ? ways - near : 2; w <= ways + near; w++)
        if ((w & -w) > (round & -round)) round = w;
    return round;
}

/* Test a level of these ways and sets that misses by half at `half` pages: no page misses at its entries, and all with one more per
 * set. `sharp`: they do; where replacement is neither LRU nor FIFO, sets with one page more do not miss always, and the tests allow
 * for another one. False: it is not a level of the TLB, because the latency does not rise, or rises further, or leaves the
 * tests of sets undecided: page walks take longer when page tables leave the caches. */
static bool test_level(struct points *points, const struct step *step, int count, int s, int32_t half, bool *sharp,
                       struct pw_tlb_level *level)
{
    const int32_t ways = level->ways, sets = level->entries / ways;
    const int32_t most = points->machine->most_pages, beyond = half < most / 4 ? 4 * half : most;
    const bool reuse = ways > 1 && level->entries + sets <= most;
    add_references(points, step, count, s);
    for (int more = 0; more <= 2; more++) add_pages(points, level->entries + more * sets, 0);
    add_pages(points, beyond, 0);
    if (reuse) add_reuse(points, level->entries, sets);
    measure(points);
    if (points->exhausted) return false;
    *sharp = (1 - share_above(points, 2, 0.25)) * share_above(points, 3, 0.75) > 0.5;
    level->entries_confidence = (1 - share_above(points, 2, 0.5)) * share_above(points, *sharp ? 3 : 4, 0.5);
    const bool plateau = s + 1 < count || share_above(points, 5, 1.5) < 0.5;
    if (reuse) {
        const double least = 1.0 / ways, apart = (1 - least) / 2;
        const double lru = 1 - share_above(points, 6, least + apart / 4), fifo = share_above(points, 6, least + apart * 3 / 4);
        level->replacement_confidence = fmax(fmax(lru, fifo), 1 - lru - fifo);
        level->replacement = lru > 0.5 ? pw_tlb_lru : fifo > 0.5 ? pw_tlb_fifo : pw_tlb_unknown;
    }
    double cost[batches];
    for (int b = 0; b < batches; b++) cost[b] = points->point[1].extra[b] - points->point[0].extra[b];
    level->cost_ns = mean_of(cost);
    level->cost_confidence = probability_above(cost, 0);
    clear(points);
    return plateau && level->cost_confidence > 0.95 && level->ways_confidence > 0.9;
}

/* False: there is no such level. */
static bool find_level(struct points *points, const struct step *step, int count, int s, struct pw_tlb_level *level)
{
    const int32_t half = half_way(points, step, count, s);
    const int32_t sets = find_sets(points, step, count, s, half, level);
    bool sharp;
    level->ways = half < sets ? 1 : half / sets;
    level->entries = level->ways * sets;
    bool is_level = test_level(points, step, count, s, half, &sharp, level);
    const int32_t round = round_ways(level->ways);
    if (!is_level || sharp || round == level->ways) return is_level;
    level->ways = round;
    level->entries = round * sets;
    return test_level(points, step, count, s, half, &sharp, level);
}

bool pw_tlb_infer(const struct pw_tlb_machine *machine, struct pw_tlb_estimate *estimate)
{
    struct points *points = calloc(1, sizeof *points);
    if (points == NULL) return false;
    struct step step[pw_tlb_levels] = {{0}};
    *estimate = (struct pw_tlb_estimate){0};
    points->machine = machine;
    points->random = machine->seed;
    int32_t last = 0;
    for (int i = 0; points->count < most_points; i++) {
        const int32_t n = (int32_t)exp2((double)i / (double)per_octave);
        if (n > machine->most_pages) break;
        if (n > last) add_pages(points, n, 0);
        last = n;
    }
    measure(points);
    const int count = points->exhausted || points->count < per_octave ? 0 : fit_steps(points, step);
    clear(points);
    for (int s = 0; s < count && !points->exhausted; s++) {
        struct pw_tlb_level *level = &estimate->level[estimate->levels];
        if (find_level(points, step, count, s, level))
            estimate->levels++;
        else
            *level = (struct pw_tlb_level){0};
    }
    clear(points);
    const bool exhausted = points->exhausted;
    free(points);
    return !exhausted;
}
