/* Measured regions: named, nestable stretches of code with their calls, seconds and event counts per thread.

   Every thread has its own stack of open regions and its own sums. A region that begins inside others has the path of their
   names, 'step/hydro/eos'; the first one of an OpenMP thread goes below those that the initial thread had open
   when it forked. Sums are merged on request, outside of parallel regions.

   The environment selects once what is counted:
     PAGEWISE_EVENTS     comma-separated list of events; default: page faults, context switches, task clock
     PAGEWISE_COUNTERS   permitted sources, of papi, perf_event, getrusage; none: time only
     PAGEWISE_MULTIPLEX  1: multiplex more events than counters; counts are then estimates
   It is never an error if nothing can be counted. More in docs/how-to/regions.md. */
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
    PW_REGION_EVENTS = 32,  /* maximum number of events counted at once */
    PW_REGION_DEPTH = 64,   /* maximum depth of nested regions */
    PW_REGION_PATHS = 1024  /* maximum number of paths, and of names */
};

/* Look a name up: a handle, or -1 with a fault recorded (no name, one with '/', too long, or too many). Any thread may call this,
   and once is enough. */
int32_t pw_region_handle(const char *name);

/* The same for a region of time only, whose calls are too short for reading counters. The first look-up of a name
   decides. */
int32_t pw_region_handle_uncounted(const char *name);

/* Begin and end the region. Both return 0, or -1 with a fault recorded: an end while another region is the innermost, which
   then ends too, unmeasured; an end of a region that is not open, which changes nothing. A region that begins directly
   inside itself is one region, with one more call. */
int32_t pw_region_begin(int32_t handle);
int32_t pw_region_end(int32_t handle);

/* The same by name, which is looked up each time. */
int32_t pw_region_begin_named(const char *name);
int32_t pw_region_end_named(const char *name);

/* End the region, with the nanoseconds of this call. */
int32_t pw_region_end_timed(int32_t handle, int64_t *nanoseconds);

/* End a region whose time another thread measured: what pw_region_end_team does on the other threads of a team. */
int32_t pw_region_end_after(int32_t handle, int64_t nanoseconds);

/* Begin the region outside of parallel regions on the calling thread and count on all threads of its team until it ends.
   Its time is that of the calling thread. (With OpenMP enabled; otherwise the same as begin and end.) */
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

/* Start the counters, unless a region did: returns the number of events that count. `events`: instead of PAGEWISE_EVENTS,
   or NULL. */
int32_t pw_regions_open(const char *events);

/* The first fault since the last reset, at most `length` characters; returns 0 and an empty text if there was none. It is
   then discarded. */
int32_t pw_regions_take_fault(char *text, int32_t length);

/* Name of event i (from 0). */
void pw_regions_event(int32_t i, char *name, int32_t length);

/* The source: the first of papi, perf_event, software that counts an event; or empty. */
void pw_regions_source(char *name, int32_t length);

/* Event i (from 0) of those requested and refused, with the reason. Returns 0 if there is none. */
int32_t pw_regions_refused(int32_t i, char *event, char *reason, int32_t length);

/* Why nothing is counted; empty if something is. */
void pw_regions_unavailable(char *reason, int32_t length);

/* Sums of one path. */
struct pw_region_total {
    char name[PW_REGION_NAME];
    char path[PW_REGION_PATH];
    int64_t calls;                    /* of all threads */
    double seconds;                   /* of the thread with the most */
    double seconds_mean;              /* mean of the threads that entered it */
    double seconds_exclusive;         /* their mean without the regions inside on the same thread */
    int64_t counts[PW_REGION_EVENTS]; /* of all threads */
    int64_t most[PW_REGION_EVENTS];   /* of the thread with the most, per event */
    int32_t threads;                  /* that entered it */
    int32_t counted;                  /* 0 if counters were not read, or could not be */
};
typedef struct pw_region_total pw_region_total;

/* Merge the threads' sums, outside of parallel regions: the number of paths, each after the one that contains it. A region
   that is still open is a fault, and its last call is missing. */
int32_t pw_regions_merge(void);

/* Path i (from 0) of the last merge. */
void pw_regions_total(int32_t i, struct pw_region_total *total);

/* Reset all sums and faults; open regions stay open and count from here. */
void pw_regions_reset(void);

/* The present cost of a begin and its end to the calling thread [s]: `pair` in an enclosing region, `inside` in their own
   region. */
void pw_regions_cost(double *pair, double *inside);

/* Merge and print a table of all regions to standard output. */
void pw_regions_print(void);

#ifdef __cplusplus
}
#endif

#endif
