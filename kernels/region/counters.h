/* Sources of event counts, for the calling thread. Each implements the same three procedures; a thread has one set
   of events per source, which the same thread reads and closes. */
#ifndef PAGEWISE_COUNTERS_H
#define PAGEWISE_COUNTERS_H

#include <stdint.h>

enum { pw_most_events = 32, pw_event_length = 128, pw_reason_length = 256, pw_nanoseconds = 1000000000 /* in a second */ };

typedef struct {
    const char *permission; /* its name in PAGEWISE_COUNTERS */
    const char *kind;       /* its name in a record's counters_source */
    /* Start counting all these events on the calling thread. NULL with the reason, which is empty if the source does not
       have the last event. */
    void *(*open)(char (*events)[pw_event_length], int32_t n_events, int32_t multiplex, char *reason, int32_t length);
    /* The counts so far, one per event. Returns 0 if they could not be read. */
    int32_t (*read)(void *set, int64_t *counts);
    void (*close)(void *set);
} pw_counter_source;

extern const pw_counter_source pw_papi_source;          /* PAPI's events; missing in a build without it */
extern const pw_counter_source pw_perf_hardware_source; /* the generic hardware events of perf_event_open, and raw ones */
extern const pw_counter_source pw_perf_software_source; /* its software events */
extern const pw_counter_source pw_usage_source;         /* the same by getrusage and the thread's clock */

/* Software events. */
typedef enum {
    pw_task_clock, pw_cpu_clock, pw_page_faults, pw_minor_faults, pw_major_faults, pw_context_switches, pw_cpu_migrations,
    pw_alignment_faults, pw_emulation_faults, pw_no_software_event
} pw_software_event;

/* The software event of a name of libpfm or perf: perf::PAGE-FAULTS, page-faults, PERF_COUNT_SW_PAGE_FAULTS. */
pw_software_event pw_software_event_of(const char *name);

/* A name of an event without a leading 'perf::', libpfm's name of the kernel's events. */
const char *pw_short_event(const char *name);

/* Whether two names are equal except for case, '_' for '-', and a leading 'perf::'. */
int pw_same_event(const char *a, const char *b);

/* The events that count in this process, chosen at the first call, and the sets of each thread. */
typedef struct pw_counters pw_counters;

/* Choose the events: `events`, or PAGEWISE_EVENTS, or the default. Returns how many count. */
int32_t pw_counters_choose(const char *events);
const char *pw_counters_event(int32_t i);
const char *pw_counters_kind(void);
int32_t pw_counters_refused(int32_t i, const char **event, const char **reason);

/* Start counting on the calling thread; NULL if nothing is counted. */
pw_counters *pw_counters_open(void);
int32_t pw_counters_read(pw_counters *counters, int64_t *counts);
void pw_counters_close(pw_counters *counters);

#endif
