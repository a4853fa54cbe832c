/* The expected work of the constructs, computed by one thread: every piece as often as rounds and threads require. */
#include "overhead.h"

#include <stdlib.h>

enum kind { all_do = 1, is_loop = 2, by_any = 4, once = 8, no_work = 16 };

/* all_do: each thread does the work of every round; by_any: the same amount, by any thread; once: only one thread does. */
static int kind_of(int32_t construct)
{
    switch (construct) {
    case overhead_parallel_for:
    case overhead_for_static: return is_loop;
    case overhead_for_dynamic:
    case overhead_for_guided: return is_loop | by_any;
    case overhead_single: return once | by_any;
    case overhead_atomic: return no_work;
    case overhead_task:
    case overhead_task_from_one:
    case overhead_taskwait: return all_do | by_any;
    default: return all_do;
    }
}

/* The number of a loop's n pieces of one thread under a static schedule: blocks as even as possible, or chunks in turn. */
static int64_t static_share(const struct overhead_call *call, int64_t n, int64_t thread)
{
    int64_t share = 0;
    if (call->construct != overhead_for_static || call->chunk == 0) return n / call->threads;
    for (int64_t i = 0; i < n; i++) share += i / call->chunk % call->threads == thread;
    return share;
}

static uint64_t result_of(int64_t piece, int64_t steps)
{
    uint64_t x = (uint64_t)piece;
    while (steps-- > 0) {
        x ^= x >> 32;
        x *= UINT64_C(0xd6e8feb86659fd93);
        x += 1;
    }
    return x;
}

/* Both are whole numbers, unless the actual one is wrong. */
static int64_t differs(double actual, double wanted)
{
    return actual != wanted;
}

int64_t pw_overhead_deviation(const struct overhead_call *call, int64_t passes, int64_t looked)
{
    const struct overhead_shared *shared = (const struct overhead_shared *)(const void *)(call->team + call->threads);
    const int kind = kind_of(call->construct);
    const int64_t rounds = passes * overhead_rounds, threads = call->threads;
    int64_t pieces = overhead_rounds, deviation = 0, count = 0;
    uint64_t sum = 0, wanted_sum = 0;

    for (int64_t thread = 0; thread < threads; thread++) deviation += call->team[thread].errors;
    if (kind & no_work) return deviation + differs(shared->atomic, (double)rounds * (double)threads);

    const int64_t n = call->iterations * threads;
    if (kind & is_loop) pieces *= n;
    for (int64_t piece = 0; piece < pieces; piece++) wanted_sum += result_of(piece, call->steps);
    wanted_sum *= (uint64_t)passes * (uint64_t)(kind & all_do ? threads : 1);
    for (int64_t thread = 0; thread < threads; thread++) {
        sum += call->team[thread].sum;
        count += call->team[thread].count;
        if (kind & by_any) continue;
        const int64_t share = kind & is_loop ? static_share(call, n, thread) : 1;
        deviation += llabs(call->team[thread].count - rounds * share);
    }
    deviation += llabs(count - rounds * (kind & is_loop ? n : kind & once ? 1 : threads)) + (sum != wanted_sum);

    switch (call->construct) {
    case overhead_critical:
    case overhead_lock:
    case overhead_ordered: return deviation + llabs(shared->guarded - looked * overhead_rounds * threads);
    case overhead_reduction:
        return deviation + differs(shared->reduction, (double)rounds * (double)threads * (double)(threads + 1) / 2.0);
    default: return deviation;
    }
}
