/* The constructs. Their body is always the same: a piece of work, which the reference executes without the construct.
 *
 * Source: J. M. Bull, Measuring synchronisation and scheduling overheads in OpenMP (EWOMP 1999); J. M. Bull, F. Reid,
 * N. McDonnell, A microbenchmark suite for OpenMP tasks (IWOMP 2012). */
#include "overhead.h"

#include <omp.h>
#include <sched.h>

#if defined(PW_BROKEN)
/* Without synchronisation of threads, work sharing, and the last round. */
#define WAITING(directive)
#define NOWAIT nowait
enum { excluded = 1 };
#else
#define WAITING(directive) _Pragma(#directive)
#define NOWAIT
enum { excluded = 0 };
#endif
#define PRAGMA(directive) _Pragma(#directive)
#define LOOP(...) PRAGMA(omp for __VA_ARGS__)

static omp_lock_t lock;

static struct overhead_shared *shared_of(const struct overhead_call *call)
{
    return (struct overhead_shared *)(void *)(call->team + call->threads);
}

static struct overhead_thread *own_of(const struct overhead_call *call)
{
    return call->team + omp_get_thread_num();
}

/* A chain of shifts and multiplications, whose result identifies the pieces that were done and how often. Not inlined, and
 * each step waits for the previous one: it takes the same time everywhere. */
__attribute__((noinline)) static void work(const struct overhead_call *call, int64_t piece)
{
    struct overhead_thread *own = own_of(call);
    uint64_t x = (uint64_t)piece ^ (own->sum & call->zero);
    for (int64_t step = 0; step < call->steps; step++) {
        x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93) + 1;
    }
    own->sum += x;
    own->count++;
}

static int64_t piece_of(int64_t round)
{
    return round % overhead_rounds;
}

/* Before a barrier, in a checking pass: each thread in turn is late. */
static void arrive(const struct overhead_call *call, int64_t round)
{
    struct overhead_thread *own = own_of(call);
    if (!call->checks) return;
    if (round % call->threads == omp_get_thread_num()) {
        const double until = omp_get_wtime() + 20e-6;
        do sched_yield();
        while (omp_get_wtime() < until);
    }
    __atomic_store_n(&own->phase, own->phase + 1, __ATOMIC_RELEASE);
}

/* After a barrier: all have reached this round. */
static void depart(const struct overhead_call *call)
{
    struct overhead_thread *own = own_of(call);
    if (!call->checks) return;
    for (int64_t thread = 0; thread < call->threads; thread++) {
        own->errors += __atomic_load_n(&call->team[thread].phase, __ATOMIC_ACQUIRE) < own->phase;
    }
}

/* Work under mutual exclusion; in a checking pass, a concurrent update would be lost. */
static void alone(const struct overhead_call *call, int64_t piece)
{
    if (!call->checks) {
        work(call, piece);
        return;
    }
    volatile int64_t *guarded = &shared_of(call)->guarded;
    const int64_t before = *guarded;
    work(call, piece);
    sched_yield();
    *guarded = before + 1;
}

static void parallel(const struct overhead_call *call, int64_t rounds)
{
    for (int64_t round = 0; round < rounds; round++) {
        PRAGMA(omp parallel)
        work(call, piece_of(round));
    }
}

static void parallel_for(const struct overhead_call *call, int64_t rounds)
{
    const int64_t n = call->iterations * call->threads;
    for (int64_t round = 0; round < rounds; round++) {
        PRAGMA(omp parallel for schedule(static))
        for (int64_t i = 0; i < n; i++) work(call, piece_of(round) * n + i);
    }
}

/* A loop with each schedule, with and without a chunk. */
#define DEFINE_LOOP(name, ...)                                                                                                  \
    static void name(const struct overhead_call *call, int64_t rounds)                                                          \
    {                                                                                                                           \
        const int64_t n = call->iterations * call->threads, chunk = call->chunk;                                                \
        (void)chunk;                                                                                                            \
        PRAGMA(omp parallel)                                                                                                    \
        for (int64_t round = 0; round < rounds; round++) {                                                                      \
            arrive(call, round);                                                                                                \
            LOOP(schedule(__VA_ARGS__) NOWAIT)                                                                                  \
            for (int64_t i = 0; i < n; i++) work(call, piece_of(round) * n + i);                                                \
            depart(call);                                                                                                       \
        }                                                                                                                       \
    }
DEFINE_LOOP(for_static, static)
DEFINE_LOOP(for_static_chunk, static, chunk)
DEFINE_LOOP(for_dynamic, dynamic)
DEFINE_LOOP(for_dynamic_chunk, dynamic, chunk)
DEFINE_LOOP(for_guided, guided)
DEFINE_LOOP(for_guided_chunk, guided, chunk)

static void barrier(const struct overhead_call *call, int64_t rounds)
{
    PRAGMA(omp parallel)
    for (int64_t round = 0; round < rounds; round++) {
        arrive(call, round);
        work(call, piece_of(round));
        WAITING(omp barrier)
        depart(call);
    }
}

static void single(const struct overhead_call *call, int64_t rounds)
{
    PRAGMA(omp parallel)
    for (int64_t round = 0; round < rounds; round++) {
        arrive(call, round);
        WAITING(omp single)
        work(call, piece_of(round));
        depart(call);
    }
}

static void critical(const struct overhead_call *call, int64_t rounds)
{
    PRAGMA(omp parallel)
    for (int64_t round = 0; round < rounds; round++) {
        WAITING(omp critical)
        alone(call, piece_of(round));
    }
}

static void locked(const struct overhead_call *call, int64_t rounds)
{
    omp_init_lock(&lock);
    PRAGMA(omp parallel)
    for (int64_t round = 0; round < rounds; round++) {
#if !defined(PW_BROKEN)
        omp_set_lock(&lock);
#endif
        alone(call, piece_of(round));
#if !defined(PW_BROKEN)
        omp_unset_lock(&lock);
#endif
    }
    omp_destroy_lock(&lock);
}

static void ordered(const struct overhead_call *call, int64_t rounds)
{
    const int64_t n = rounds * call->threads;
    volatile int64_t *guarded = &shared_of(call)->guarded;
    const int64_t first = *guarded;
    PRAGMA(omp parallel for ordered schedule(static, 1))
    for (int64_t i = 0; i < n; i++) {
        WAITING(omp ordered)
        {
            if (call->checks) own_of(call)->errors += *guarded != first + i;
            alone(call, piece_of(i));
        }
    }
}

static void atomic(const struct overhead_call *call, int64_t rounds)
{
    double *sum = &shared_of(call)->atomic;
    PRAGMA(omp parallel)
    for (int64_t round = 0; round < rounds; round++) {
        WAITING(omp atomic)
        *sum += 1.0;
#if defined(PW_BROKEN)
        __asm__ volatile("" ::: "memory");
#endif
    }
}

static void reduction(const struct overhead_call *call, int64_t rounds)
{
    double sum = 0.0;
    for (int64_t round = 0; round < rounds; round++) {
#if defined(PW_BROKEN)
        PRAGMA(omp parallel firstprivate(sum))
#else
        PRAGMA(omp parallel reduction(+ : sum))
#endif
        {
            work(call, piece_of(round));
            sum += omp_get_thread_num() + 1;
        }
    }
    shared_of(call)->reduction += sum;
}

static void task(const struct overhead_call *call, int64_t rounds)
{
    PRAGMA(omp parallel)
    for (int64_t round = 0; round < rounds; round++) {
        PRAGMA(omp task)
        work(call, piece_of(round));
    }
}

static void task_from_one(const struct overhead_call *call, int64_t rounds)
{
    const int64_t n = rounds * call->threads;
    PRAGMA(omp parallel)
    {
        WAITING(omp master)
        for (int64_t i = 0; i < n; i++) {
            PRAGMA(omp task)
            work(call, piece_of(i));
        }
    }
}

static void taskwait(const struct overhead_call *call, int64_t rounds)
{
    PRAGMA(omp parallel)
    for (int64_t round = 0; round < rounds; round++) {
        int64_t done = 0;
        PRAGMA(omp task shared(done))
        {
            if (call->checks) sched_yield();
            work(call, piece_of(round));
            __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
        }
        WAITING(omp taskwait)
        if (call->checks) own_of(call)->errors += __atomic_load_n(&done, __ATOMIC_ACQUIRE) != 1;
#if defined(PW_BROKEN)
        PRAGMA(omp taskwait)
#endif
    }
}

void pw_overhead_run(const struct overhead_call *call)
{
    const int64_t rounds = call->passes * overhead_rounds - excluded;
    const int chunk = call->chunk > 0;
    switch (call->construct) {
    case overhead_parallel: parallel(call, rounds); break;
    case overhead_parallel_for: parallel_for(call, rounds); break;
    case overhead_for_static: (chunk ? for_static_chunk : for_static)(call, rounds); break;
    case overhead_for_dynamic: (chunk ? for_dynamic_chunk : for_dynamic)(call, rounds); break;
    case overhead_for_guided: (chunk ? for_guided_chunk : for_guided)(call, rounds); break;
    case overhead_barrier: barrier(call, rounds); break;
    case overhead_single: single(call, rounds); break;
    case overhead_critical: critical(call, rounds); break;
    case overhead_lock: locked(call, rounds); break;
    case overhead_ordered: ordered(call, rounds); break;
    case overhead_atomic: atomic(call, rounds); break;
    case overhead_reduction: reduction(call, rounds); break;
    case overhead_task: task(call, rounds); break;
    case overhead_task_from_one: task_from_one(call, rounds); break;
    case overhead_taskwait: taskwait(call, rounds); break;
    default: break;
    }
}

/* The pieces of work of a thread per round. */
static int64_t pieces(const struct overhead_call *call)
{
    switch (call->construct) {
    case overhead_parallel_for:
    case overhead_for_static:
    case overhead_for_dynamic:
    case overhead_for_guided: return call->iterations;
    default: return 1;
    }
}

double pw_overhead_reference(const struct overhead_call *call, int64_t rounds)
{
    double seconds = 0.0;
    const int64_t n = rounds * pieces(call);
    PRAGMA(omp parallel)
    {
        const double start = omp_get_wtime();
        if (call->construct == overhead_atomic) {
            double sum = 0.0;
            for (int64_t i = 0; i < n; i++) {
                sum += 1.0;
                __asm__ volatile("" : "+m"(sum));
            }
        } else {
            for (int64_t i = 0; i < n; i++) work(call, piece_of(i));
        }
        if (omp_get_thread_num() == 0) seconds = omp_get_wtime() - start;
    }
    return seconds / (double)rounds;
}
