/* The interface of counters.h in a build without PAPI: nothing is counted, and the reason says so. */
#include "counters.h"

#include <stdio.h>

pw_counters *pw_counters_open(const char *events, int32_t *n_events, char *reason, int32_t length)
{
    (void)events;
    *n_events = 0;
    snprintf(reason, (size_t)length, "built without PAPI");
    return NULL;
}

int32_t pw_counters_read(pw_counters *counters, int64_t *counts)
{
    (void)counters;
    (void)counts;
    return 0;
}

void pw_counters_name(const pw_counters *counters, int32_t i, char *name, int32_t length)
{
    (void)counters;
    (void)i;
    snprintf(name, (size_t)length, "none");
}

void pw_counters_close(pw_counters *counters)
{
    (void)counters;
}
