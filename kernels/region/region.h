/* Measured regions: named, nestable stretches of code with their calls, seconds and event counts, thread by thread.

   Every thread has a stack of open regions and sums of its own. A region that begins inside others has the path of their
   names, 'step/hydro/eos'; one that an OpenMP thread begins first of all goes below those which the initial thread had open
   when it forked. Sums are merged when they are asked for, outside of parallel regions.

   What counts is chosen once, by the environment:
     PAGEWISE_EVENTS     comma-separated list of events; by default page faults, context switches, task clock
     PAGEWISE_COUNTERS   sources that may count, of papi, perf_event, getrusage; none: time alone
     PAGEWISE_MULTIPLEX  1: more events than counters, which take turns; counts are then estimates
   That nothing can be counted is never an error. docs/regions.md tells more. */
#ifndef PAGEWISE_REGION_H
#define PAGEWISE_REGION_H

#include <stdint.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PW_REGION_NAME = 64,    /* characters of a name, with the null character */
    PW_REGION_PATH = 512,   /* of a path */
    PW_REGION_EVENTS = 32,  /* most events counted at once */
    PW_REGION_DEPTH = 64,   /* most regions inside each other */
    PW_REGION_PATHS = 1024  /* most paths and most names */
};

/* Look a name up once, for use where looking up would cost: a handle, or -1 with a fault kept (no name, one with '/', too
   long, or too many). Any thread may call this. */
int32_t pw_region_handle(const char *name);

/* The same for a region of time alone, whose passages are too short for reading counters. A name is one or the other, as it
   was looked up first. */
int32_t pw_region_handle_uncounted(const char *name);

/* Begin and end the region. Both return 0, or -1 with a fault kept: an end where another region is the innermost, which
   then ends too, unmeasured; an end of what is not open, which changes nothing. A region that begins directly inside itself
   is one region, with a call more. */
int32_t pw_region_begin(int32_t handle);
int32_t pw_region_end(int32_t handle);

/* The same by name: begin looks the name up each time. */
int32_t pw_region_begin_named(const char *name);
int32_t pw_region_end_named(const char *name);

/* The same for what ends by itself, such as an object: `enter` returns a token, 0 after a fault, and `leave` takes it. */
int64_t pw_region_enter(int32_t handle);
int32_t pw_region_leave(int32_t handle, int64_t token);

/* End the region, with the nanoseconds of this passage. */
int32_t pw_region_end_timed(int32_t handle, int64_t *nanoseconds);
int32_t pw_region_end_named_timed(const char *name, int64_t *nanoseconds);

/* End a region whose time another thread took: what pw_region_end_team does on the other threads of a team. */
int32_t pw_region_end_after(int32_t handle, int64_t nanoseconds);

/* Begin the region outside of parallel regions on the calling thread and count on all threads of its team until it ends.
   Its time is that of the calling thread. (Where the compiler has OpenMP switched on; otherwise as begin and end.) */
static inline int32_t pw_region_begin_team(int32_t handle)
{
#ifdef _OPENMP
#pragma omp parallel
    if (omp_get_thread_num() != 0) pw_region_begin(handle);
#endif
    return pw_region_begin(handle);
}

static inline int32_t pw_region_end_team(int32_t handle)
{
    int64_t nanoseconds = 0;
    int32_t status = pw_region_end_timed(handle, &nanoseconds);
#ifdef _OPENMP
#pragma omp parallel
    if (omp_get_thread_num() != 0) pw_region_end_after(handle, nanoseconds);
#endif
    return status;
}

/* Start the counters, unless a region did: returns how many events count. `events`: instead of PAGEWISE_EVENTS, or NULL. */
int32_t pw_regions_open(const char *events);

/* The first fault since the last reset, at most `length` characters; returns 0 and an empty text if there was none. It is
   kept no longer then. */
int32_t pw_regions_take_fault(char *text, int32_t length);

/* Name of event i (from 0). */
void pw_regions_event(int32_t i, char *name, int32_t length);

/* Who counts: papi, perf_event, software, the first of these that counts an event; or empty. */
void pw_regions_source(char *name, int32_t length);

/* What cannot be counted: event i (from 0) of those asked for and refused, with the reason. Returns 0 if there is no such. */
int32_t pw_regions_refused(int32_t i, char *name, char *reason, int32_t length);

/* Why nothing is counted; empty where something is. */
void pw_regions_unavailable(char *reason, int32_t length);

/* The counts of the calling thread so far, one an event. Returns 0 if they could not be read. */
int32_t pw_regions_counts(int64_t *counts);

/* Sums of one path. */
typedef struct {
    char name[PW_REGION_NAME];
    char path[PW_REGION_PATH];
    int64_t calls;                    /* of all threads */
    double seconds;                   /* of the thread with the most */
    double seconds_mean;              /* of the threads that came here */
    double seconds_exclusive;         /* their mean without what regions inside took on the same thread */
    int64_t counts[PW_REGION_EVENTS]; /* of all threads */
    int32_t threads;                  /* that came here */
    int32_t counted;                  /* 0 if counters were not read, or could not be */
} pw_region_total;

/* Merge the threads' sums, outside of parallel regions: the number of paths, each after the one that it lies in. A region
   that is still open is a fault, and the passage is missing. */
int32_t pw_regions_merge(void);

/* Path i (from 0) of those merged last. */
void pw_regions_total(int32_t i, pw_region_total *total);

/* Forget all sums and faults; regions that are open stay so and count anew from here. */
void pw_regions_reset(void);

/* What a begin and its end cost the calling thread now [s]: `pair` in a region around them, `inside` in their own region. */
void pw_regions_cost(double *pair, double *inside);

/* Merge, and print a table of all regions to standard output. */
void pw_regions_print(void);

#ifdef __cplusplus
}
#endif

#endif
