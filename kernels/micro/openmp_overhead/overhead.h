/* One OpenMP construct, repeated, with a little work inside; driver.f90 declares the same numbers. */
#ifndef PAGEWISE_OVERHEAD_H
#define PAGEWISE_OVERHEAD_H

#include <stdint.h>

/* In the order of --construct. */
enum {
    overhead_parallel = 1, overhead_parallel_for, overhead_for_static, overhead_for_dynamic, overhead_for_guided,
    overhead_barrier, overhead_single, overhead_critical, overhead_lock, overhead_ordered, overhead_atomic,
    overhead_reduction, overhead_task, overhead_task_from_one, overhead_taskwait
};

enum { overhead_rounds = 64 }; /* per pass; the work of round j is that of j modulo this */

/* The counts of a thread, in its own cache lines. */
struct overhead_thread {
    uint64_t sum;   /* of the results of its work */
    int64_t count;  /* pieces of work */
    int64_t phase;  /* rounds that it reached, in a checking pass */
    int64_t errors; /* detected in a checking pass */
    int64_t unused[28];
};

/* Written by all threads: after the threads' lines. */
struct overhead_shared {
    double atomic;    /* added to by atomic */
    double reduction; /* sum of all reductions */
    int64_t guarded;  /* counted under critical, a lock or ordered, in a checking pass */
    int64_t unused[29];
};

struct overhead_call {
    int64_t passes, threads;
    int64_t iterations; /* of a loop, per thread */
    int64_t chunk;      /* of the schedule; 0: unspecified */
    int64_t steps;      /* of a piece of work */
    uint64_t zero;      /* 0, unknown to the compiler */
    struct overhead_thread *team; /* threads + 1 lines: the last one is shared */
    int32_t construct;
    int32_t checks; /* whether threads are late and check the work of the others: never in timed passes */
};

/* `passes` passes of the construct by all threads. */
void pw_overhead_run(const struct overhead_call *call);

/* Seconds of one thread for the work of a round without the construct, while all threads work; mean over `rounds`. */
double pw_overhead_reference(const struct overhead_call *call, int64_t rounds);

/* The number of counts of `call->team` that differ from those expected of this number of passes, `looked` of them checking;
 * 0: all are right. Computed serially. */
int64_t pw_overhead_deviation(const struct overhead_call *call, int64_t passes, int64_t looked);

#endif
