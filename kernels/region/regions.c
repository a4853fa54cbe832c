/* Measuring: begin and end of regions. */
#include "marks.h"
#include "state.h"

#include <stdlib.h>

/* OpenMP's, if the program uses OpenMP: the number of parallel regions around the caller. */
extern int omp_get_level(void) __attribute__((weak));

static inline int32_t level_now(void)
{
    return omp_get_level != NULL ? omp_get_level() : 0;
}

/* Names are only added: a thread's handle stays valid while others look up names. */
static inline int is_handle(int32_t handle)
{
    return handle >= 0 && handle < __atomic_load_n(&pw_n_region_names, __ATOMIC_ACQUIRE);
}

static inline int32_t path_inside(thread *t, int32_t parent, int32_t handle)
{
    known_path *known = &t->path[((uint32_t)parent * 31U + (uint32_t)handle) % cached_paths];
    if (known->path < 0 || known->parent != parent || known->handle != handle)
        *known = (known_path){parent, handle, pw_look_up_path(parent, handle)};
    return known->path;
}

/* The parent of a thread's outermost region: the region that the initial thread had open when it forked this one. */
static int32_t forked_in(const thread *t, int32_t level)
{
    const thread *master = __atomic_load_n(&pw_initial_thread, __ATOMIC_ACQUIRE);
    if (master == NULL || master == t || level == 0) return unknown_path;
    for (int32_t d = __atomic_load_n(&master->depth, __ATOMIC_ACQUIRE) - 1; d >= 0; d--)
        if (__atomic_load_n(&master->stack[d].level, __ATOMIC_RELAXED) < level)
            return __atomic_load_n(&master->stack[d].path, __ATOMIC_RELAXED);
    return unknown_path;
}

static sums *new_sums(thread *t, int32_t at)
{
    t->sum[at] = calloc(1, sizeof(sums));
    if (t->sum[at] != NULL) t->sum[at]->counted = 1;
    return t->sum[at];
}

int32_t pw_region_begin(int32_t handle)
{
    thread *t = here();
    if (!is_handle(handle) || t == NULL) return -1;
    region_entry *outer = t->depth > 0 ? &t->stack[t->depth - 1] : NULL;
    if (outer != NULL && outer->handle == handle) {
        outer->again++;
        return 0;
    }
    if (t->depth == PW_REGION_DEPTH)
        return pw_record_fault("region '%s' is nested too deeply: at most %d levels are possible", name_of(handle),
                               PW_REGION_DEPTH);
    int32_t level = level_now();
    int32_t at = path_inside(t, outer != NULL ? outer->path : forked_in(t, level), handle);
    if (at < 0 || (t->sum[at] == NULL && new_sums(t, at) == NULL))
        return pw_record_fault("no room for another path of region '%s': at most %d are possible", name_of(handle),
                               PW_REGION_PATHS);
    region_entry *p = &t->stack[t->depth];
    p->handle = handle;
    __atomic_store_n(&p->path, at, __ATOMIC_RELAXED);
    __atomic_store_n(&p->level, level, __ATOMIC_RELAXED);
    p->again = 0;
    p->inside = 0;
    __atomic_store_n(&t->depth, t->depth + 1, __ATOMIC_RELEASE);
    p->counted = pw_region_names[handle].uncounted ? 0 : read_counts(t, p->counts);
    if (handle != of_cost) pw_mark_begin(name_of(handle), pw_region_names[handle].length);
    p->start = clock_now();
    return 0;
}

/* End the innermost region. `nanoseconds`: of the call, measured by another thread, or -1. */
static int64_t end_innermost(thread *t, int64_t nanoseconds)
{
    int64_t now = clock_now(), counts[pw_most_events];
    region_entry *p = &t->stack[t->depth - 1];
    sums *sum = t->sum[p->path];
    sum->calls++;
    if (p->again > 0) {
        p->again--;
        return now - p->start;
    }
    if (p->handle != of_cost) pw_mark_end();
    if (nanoseconds < 0) nanoseconds = now - p->start;
    sum->nanoseconds += nanoseconds;
    sum->inside += p->inside;
    if (pw_n_region_events > 0) {
        if (p->counted && read_counts(t, counts))
            for (int32_t i = 0; i < pw_n_region_events; i++)
                sum->counts[i] += counts[i] > p->counts[i] ? counts[i] - p->counts[i] : 0;
        else
            sum->counted = 0;
    }
    __atomic_store_n(&t->depth, t->depth - 1, __ATOMIC_RELEASE);
    if (t->depth > 0 && p->handle != of_cost) t->stack[t->depth - 1].inside += nanoseconds;
    return nanoseconds;
}

/* Make the region the innermost one. 0 if it already is; otherwise a fault is recorded, and regions open inside it are
   abandoned. */
static int32_t unwind(thread *t, int32_t handle)
{
    if (t->depth > 0 && t->stack[t->depth - 1].handle == handle) return 0;
    if (t->depth == 0) return pw_record_fault("region '%s' ends, but no region is open on this thread", name_of(handle));
    const char *innermost = name_of(t->stack[t->depth - 1].handle);
    int32_t d = t->depth - 1;
    while (d >= 0 && t->stack[d].handle != handle) d--;
    if (d < 0) return pw_record_fault("region '%s' ends inside region '%s', but has not begun", name_of(handle), innermost);
    pw_record_fault("region '%s' ends inside region '%s', which is still open", name_of(handle), innermost);
    for (int32_t inner = t->depth - 1; inner > d; inner--) pw_mark_end();
    __atomic_store_n(&t->depth, d + 1, __ATOMIC_RELEASE);
    return -1;
}

int32_t pw_end_region(int32_t handle, int64_t given, int64_t *nanoseconds)
{
    thread *t = here();
    *nanoseconds = 0;
    if (!is_handle(handle) || t == NULL) return -1;
    int32_t status = unwind(t, handle);
    if (t->depth > 0 && t->stack[t->depth - 1].handle == handle) *nanoseconds = end_innermost(t, given);
    return status;
}

int32_t pw_region_end(int32_t handle)
{
    int64_t nanoseconds;
    return pw_end_region(handle, -1, &nanoseconds);
}

int32_t pw_region_end_timed(int32_t handle, int64_t *nanoseconds)
{
    return pw_end_region(handle, -1, nanoseconds);
}

int32_t pw_region_end_after(int32_t handle, int64_t nanoseconds)
{
    int64_t unused;
    return pw_end_region(handle, nanoseconds, &unused);
}

int32_t pw_region_begin_named(const char *name)
{
    return pw_region_begin(pw_region_handle(name));
}

int32_t pw_region_end_named(const char *name)
{
    return pw_region_end(pw_region_handle(name));
}
