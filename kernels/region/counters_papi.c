/* The interface of counters.h by PAPI (https://icl.utk.edu/papi): presets such as PAPI_TOT_CYC, native events such as
   perf::PAGE-FAULTS. An event set belongs to one component, so that software and hardware events get a set each. */
#define _GNU_SOURCE
#include "counters.h"

#include <papi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { max_events = 32, max_sets = 4 };

struct pw_counters {
    int n_events, n_sets;
    int set[max_sets];
    int set_of[max_events], place_in[max_events], size_of[max_sets];
    char name[max_events][PAPI_MAX_STR_LEN];
};

/* Add the event to the first set that takes it, opening a further set where none does. */
static int add_event(pw_counters *c, const char *name)
{
    if (c->n_events == max_events) return PAPI_ENOMEM;
    int status = PAPI_ENOMEM;
    for (int s = 0; s < max_sets; s++) {
        if (s == c->n_sets) {
            c->set[s] = PAPI_NULL;
            if ((status = PAPI_create_eventset(&c->set[s])) != PAPI_OK) return status;
            c->size_of[s] = 0;
            c->n_sets++;
        }
        status = PAPI_add_named_event(c->set[s], name);
        if (status == PAPI_OK) {
            c->set_of[c->n_events] = s;
            c->place_in[c->n_events] = c->size_of[s]++;
            snprintf(c->name[c->n_events], sizeof c->name[0], "%s", name);
            c->n_events++;
            return PAPI_OK;
        }
        if (c->size_of[s] == 0) break; /* an empty set refuses it: so would any other */
    }
    return status;
}

pw_counters *pw_counters_open(const char *events, int32_t *n_events, char *reason, int32_t length)
{
    *n_events = 0;
    int status = PAPI_library_init(PAPI_VER_CURRENT);
    if (status != PAPI_VER_CURRENT) {
        snprintf(reason, (size_t)length, "PAPI does not start: %s", status < 0 ? PAPI_strerror(status) : "other version");
        return NULL;
    }
    pw_counters *c = calloc(1, sizeof *c);
    char *list = strdup(events);
    if (c == NULL || list == NULL) {
        free(c);
        free(list);
        snprintf(reason, (size_t)length, "no memory for the event set");
        return NULL;
    }
    snprintf(reason, (size_t)length, "no event named");
    char *rest = list;
    for (char *name = strtok_r(list, ", ", &rest); name != NULL; name = strtok_r(NULL, ", ", &rest)) {
        status = add_event(c, name);
        if (status != PAPI_OK) snprintf(reason, (size_t)length, "PAPI cannot count %s: %s", name, PAPI_strerror(status));
    }
    free(list);
    for (int s = 0; s < c->n_sets; s++) {
        if (c->size_of[s] == 0) continue;
        status = PAPI_start(c->set[s]);
        if (status != PAPI_OK) {
            snprintf(reason, (size_t)length, "PAPI does not count: %s", PAPI_strerror(status));
            c->n_sets = s;
            c->n_events = 0;
        }
    }
    if (c->n_events == 0) {
        pw_counters_close(c);
        return NULL;
    }
    *n_events = c->n_events;
    return c;
}

int32_t pw_counters_read(pw_counters *c, int64_t *counts)
{
    long long values[max_sets][max_events];
    for (int s = 0; s < c->n_sets; s++)
        if (c->size_of[s] > 0 && PAPI_read(c->set[s], values[s]) != PAPI_OK) return 0;
    for (int i = 0; i < c->n_events; i++) counts[i] = values[c->set_of[i]][c->place_in[i]];
    return 1;
}

void pw_counters_name(const pw_counters *c, int32_t i, char *name, int32_t length)
{
    snprintf(name, (size_t)length, "%s", c->name[i]);
}

void pw_counters_close(pw_counters *c)
{
    long long values[max_events];
    for (int s = 0; s < c->n_sets; s++) {
        if (c->size_of[s] > 0) PAPI_stop(c->set[s], values);
        PAPI_cleanup_eventset(c->set[s]);
        PAPI_destroy_eventset(&c->set[s]);
    }
    free(c);
}
