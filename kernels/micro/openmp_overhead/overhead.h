/* One construct of OpenMP over and over, with a little work inside; main.f90 has the same type and the same numbers. */
#ifndef PAGEWISE_OVERHEAD_H
#define PAGEWISE_OVERHEAD_H

#include <stdint.h>

/* In the order of --construct. */
enum {
    overhead_parallel = 1, overhead_parallel_for, overhead_for_static, overhead_for_dynamic, overhead_for_guided,
    overhead_barrier, overhead_single, overhead_critical, overhead_lock, overhead_ordered, overhead_atomic,
    overhead_reduction, overhead_task, overhead_task_from_one, overhead_taskwait
};

enum { overhead_rounds = 64 }; /* of a pass; the work of round j is that of j modulo this */

/* What a thread did, in lines of its own. */
struct overhead_thread {
    uint64_t sum;   /* of the results of its work */
    int64_t count;  /* pieces of work */
    int64_t phase;  /* rounds that it came to, in a pass that looks at the order */
    int64_t errors; /* found by looking */
    int64_t unused[28];
};

/* What all threads write: behind the threads' lines. */
struct overhead_shared {
    double atomic;    /* added to by atomic */
    double reduction; /* sum of all reductions */
    int64_t guarded;  /* counted under critical, a lock or ordered, in a pass that looks */
    int64_t unused[29];
};

struct overhead_call {
    int64_t passes, threads;
    int64_t iterations; /* of a loop, a thread */
    int64_t chunk;      /* of the schedule; 0: none is given */
    int64_t steps;      /* of a piece of work */
    uint64_t zero;      /* 0, which the compiler does not know */
    struct overhead_thread *team; /* threads + 1 lines: the last one is shared */
    int32_t construct;
    int32_t looks; /* whether threads come late and look at what the others did: outside of what is timed */
};

/* `passes` passes of the construct by all threads. */
void pw_overhead_run(const struct overhead_call *call);

/* Seconds that one thread takes for the work of a round without the construct, all threads working at once; mean of `rounds`. */
double pw_overhead_reference(const struct overhead_call *call, int64_t rounds);

/* How much of what `call->team` counted is not what so many passes must give, `looked` of them with a look at the order; 0: all
 * is right. Computed serially. */
int64_t pw_overhead_deviation(const struct overhead_call *call, int64_t passes, int64_t looked);

#endif
