/* Events by PAPI (https://icl.utk.edu/papi): presets such as PAPI_TOT_CYC, and native events as libpfm names them. An event
   set belongs to one component and to one thread. */
#define _GNU_SOURCE
#include "counters.h"

#include <papi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { most_sets = 4 };

typedef struct {
    int32_t n_events, n_sets;
    int set[most_sets];
    int32_t started[most_sets], size[most_sets];
    int32_t set_of[pw_most_events], place_in[pw_most_events];
} papi_sets;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int status_of_start;

static void start_library(void)
{
    status_of_start = PAPI_library_init(PAPI_VER_CURRENT);
    if (status_of_start != PAPI_VER_CURRENT) return;
    int status = PAPI_thread_init((unsigned long (*)(void))pthread_self);
    if (status == PAPI_OK) status = PAPI_multiplex_init();
    /* If multiplexing fails, only PAGEWISE_MULTIPLEX is affected. */
    if (status != PAPI_OK && status != PAPI_ENOSUPP && status != PAPI_ECMP) status_of_start = status;
}

static void close_sets(void *of)
{
    papi_sets *c = of;
    long long values[pw_most_events];
    for (int32_t s = 0; s < c->n_sets; s++) {
        if (c->started[s]) PAPI_stop(c->set[s], values);
        PAPI_cleanup_eventset(c->set[s]);
        PAPI_destroy_eventset(&c->set[s]);
    }
    free(c);
    if (getpid() != (pid_t)syscall(SYS_gettid)) PAPI_unregister_thread();
}

/* Another event set, for the component of the event. */
static int add_set(papi_sets *c, int code, int32_t multiplex)
{
    int s = c->n_sets;
    c->set[s] = PAPI_NULL;
    int status = PAPI_create_eventset(&c->set[s]);
    if (status != PAPI_OK) return status;
    c->n_sets++;
    if (!multiplex) return PAPI_OK;
    int component = PAPI_get_event_component(code);
    if (component < 0) return component;
    status = PAPI_assign_eventset_component(c->set[s], component);
    /* If it is refused (by PAPI 7.0 on a machine without hardware counters), events that do not fit are refused too. */
    if (status == PAPI_OK) PAPI_set_multiplex(c->set[s]);
    return status;
}

/* Add the event to the first set that takes it, or to a new one. */
static int add_event(papi_sets *c, const char *name, int32_t multiplex)
{
    int code, status = PAPI_event_name_to_code(name, &code);
    if (status != PAPI_OK) return status;
    status = PAPI_ENOMEM;
    for (int32_t s = 0; s < most_sets; s++) {
        if (s == c->n_sets && (status = add_set(c, code, multiplex)) != PAPI_OK) return status;
        status = PAPI_add_event(c->set[s], code);
        if (status == PAPI_OK) {
            c->set_of[c->n_events] = s;
            c->place_in[c->n_events++] = c->size[s]++;
            return PAPI_OK;
        }
        if (c->size[s] == 0) break; /* an empty set refuses it: so would any other */
    }
    return status;
}

static void *open_sets(char (*events)[pw_event_length], int32_t n_events, int32_t multiplex, char *reason, int32_t length)
{
    pthread_once(&once, start_library);
    if (status_of_start != PAPI_VER_CURRENT) {
        snprintf(reason, (size_t)length, "PAPI failed to start: %s",
                 status_of_start < 0 ? PAPI_strerror(status_of_start) : "version differs from the headers");
        return NULL;
    }
    papi_sets *c = calloc(1, sizeof *c);
    int status = PAPI_register_thread();
    if (c == NULL || status != PAPI_OK) {
        free(c);
        snprintf(reason, (size_t)length, "PAPI cannot register this thread");
        return NULL;
    }
    for (int32_t i = 0; i < n_events && status == PAPI_OK; i++) {
        status = add_event(c, events[i], multiplex);
        if (status != PAPI_OK) snprintf(reason, (size_t)length, "PAPI cannot count %s: %s", events[i], PAPI_strerror(status));
    }
    for (int32_t s = 0; s < c->n_sets && status == PAPI_OK; s++) {
        status = PAPI_start(c->set[s]);
        c->started[s] = status == PAPI_OK;
        if (status != PAPI_OK) snprintf(reason, (size_t)length, "PAPI failed to start counting: %s", PAPI_strerror(status));
    }
    if (status == PAPI_OK) return c;
    close_sets(c);
    return NULL;
}

static int32_t read_sets(void *of, int64_t *counts)
{
    const papi_sets *c = of;
    long long values[most_sets][pw_most_events];
    for (int32_t s = 0; s < c->n_sets; s++)
        if (PAPI_read(c->set[s], values[s]) != PAPI_OK) return 0;
    for (int32_t i = 0; i < c->n_events; i++) counts[i] = values[c->set_of[i]][c->place_in[i]];
    return 1;
}

const pw_counter_source pw_papi_source = {"papi", "papi", open_sets, read_sets, close_sets};
