/* Event counters of the calling thread. One of counters_papi.c and counters_none.c implements this interface; which
   one is chosen at build time (PAGEWISE_PAPI), and a machine that cannot count is never an error at run time. */
#ifndef PAGEWISE_COUNTERS_H
#define PAGEWISE_COUNTERS_H

#include <stdint.h>

typedef struct pw_counters pw_counters;

/* Start counting the events of the comma-separated list. Returns the set and the number of events that count, or NULL
   with the reason (at most `length` characters) when nothing can be counted. */
pw_counters *pw_counters_open(const char *events, int32_t *n_events, char *reason, int32_t length);

/* The counts so far, one an event. Returns 0 if they could not be read. */
int32_t pw_counters_read(pw_counters *counters, int64_t *counts);

/* Name of event i (from 0). */
void pw_counters_name(const pw_counters *counters, int32_t i, char *name, int32_t length);

void pw_counters_close(pw_counters *counters);

#endif
