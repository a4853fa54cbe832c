/* A chase with one hop fewer than requested; or a right one, and a load that skips or repeats lines that it counts. Validation
 * must detect each. */
#include "loaded_latency.h"
#include "pw_broken.h"

void pw_chase_and_stop(int64_t hops, pw_link **at, int32_t *stop)
{
    const int right = getenv("PAGEWISE_BROKEN") != NULL;
    for (int64_t i = !right; i < hops; i++) *at = (*at)->next;
    __atomic_store_n(stop, 1, __ATOMIC_RELEASE);
}

void pw_load_until(const int32_t *stop, void *line, int64_t groups, int64_t reads, int64_t writes, int64_t delay,
                   struct pw_load_done *done)
{
    const int repeats = pw_broken_is("repeated-reads"), reads_less = pw_broken_is("skipped-read"),
              writes_less = pw_broken_is("skipped-write"), half = pw_broken_is("half-line");
    const uint64_t *source = line;
    uint64_t *target = (uint64_t *)line + groups * reads * pw_line_doubles;
    (void)delay;
    do {
        const int64_t at = done->groups % groups, from = repeats ? at % ((groups + 1) / 2) : at;
        done->groups++;
        for (int64_t k = 0; k < (reads - reads_less) * pw_line_doubles - half * pw_line_doubles / 2; k++)
            done->sum += source[from * reads * pw_line_doubles + k];
        for (int64_t k = 0; k < (writes - writes_less) * pw_line_doubles; k++)
            target[at * writes * pw_line_doubles + k] = (uint64_t)done->groups;
    } while (!__atomic_load_n(stop, __ATOMIC_RELAXED));
}
