/* Stub for a build without PAPI. */
#include "counters.h"

#include <stdio.h>

static void *open_set(char (*events)[pw_event_length], int32_t n_events, int32_t multiplex, char *reason, int32_t length)
{
    (void)events;
    (void)n_events;
    (void)multiplex;
    snprintf(reason, (size_t)length, "built without PAPI");
    return NULL;
}

static int32_t read_set(void *set, int64_t *counts)
{
    (void)set;
    (void)counts;
    return 0;
}

static void close_set(void *set)
{
    (void)set;
}

const pw_counter_source pw_papi_source = {"papi", "papi", open_set, read_set, close_set};
