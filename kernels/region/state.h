/* What the files of regions share. A thread writes only its own state; shared data, names and paths, only grow, under a lock,
   and threads cache their look-ups. */
#ifndef PAGEWISE_STATE_H
#define PAGEWISE_STATE_H

#include "counters.h"
#include "region.h"

#include <pthread.h>
#include <time.h>

enum {
    cached_paths = 256, /* per thread */
    cached_names = 64,
    unknown_path = -1,
    of_cost = 0, /* the handle of the region that measures cost */
    PW_REGION_FAULT = 2 * PW_REGION_PATH
};

typedef struct {
    int32_t handle, parent; /* parent: a path, or -1 */
} path_of;

typedef struct {
    int64_t calls, nanoseconds, inside; /* inside: of nested regions, on this thread */
    int32_t counted;
    int64_t counts[pw_most_events];
} sums;

/* A call that has begun. Another thread may read path and level: a thread that was forked in it. */
typedef struct {
    int32_t handle, path, level, again; /* again: number of times that it began inside itself */
    int64_t start, inside;
    int32_t counted;
    int64_t counts[pw_most_events];
} region_entry;

typedef struct {
    int32_t parent, handle, path;
} known_path;

typedef struct {
    char name[PW_REGION_NAME];
    int32_t handle;
} known_name;

typedef struct thread {
    struct thread *next;
    int32_t taken, depth; /* taken: 0 when its thread has ended, and another may continue the sums */
    pw_counters *counters;
    region_entry stack[PW_REGION_DEPTH];
    known_path path[cached_paths];
    known_name name[cached_names];
    sums *sum[PW_REGION_PATHS];
} thread;

typedef struct {
    char text[PW_REGION_NAME];
    int32_t length, uncounted; /* uncounted: a region of time only */
} region_name;

/* Hidden: begin and end then access them directly also where this code is part of a shared library. */
#pragma GCC visibility push(hidden)
extern region_name pw_region_names[PW_REGION_PATHS]; /* by handle */
extern path_of pw_region_paths[PW_REGION_PATHS];
extern int32_t pw_n_region_names, pw_n_region_paths, pw_n_region_events;
extern thread *pw_region_threads, *pw_initial_thread;
extern _Thread_local thread *pw_own_thread;
extern pthread_mutex_t pw_regions_lock;
extern char pw_first_fault[PW_REGION_FAULT];

/* Record the first fault. Returns -1. */
int32_t pw_record_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The path of a region inside another path. -1 if there are too many. */
int32_t pw_look_up_path(int32_t parent, int32_t handle);

/* The calling thread's state, made at its first region. NULL without memory. */
thread *pw_enter_thread(void);

/* End the innermost region if it is this one: `given` nanoseconds if not below 0. */
int32_t pw_end_region(int32_t handle, int64_t given, int64_t *nanoseconds);
#pragma GCC visibility pop

static inline thread *here(void)
{
    return pw_own_thread != NULL ? pw_own_thread : pw_enter_thread();
}

static inline const char *name_of(int32_t handle)
{
    return pw_region_names[handle].text;
}

static inline int64_t clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * pw_nanoseconds + now.tv_nsec;
}

static inline int32_t read_counts(thread *t, int64_t *counts)
{
    return pw_n_region_events == 0 ? 0 : pw_counters_read(t->counters, counts);
}

#endif
