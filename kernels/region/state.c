/* Names, paths, faults, and the state of each thread: see state.h. */
#define _GNU_SOURCE
#include "state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

region_name pw_region_names[PW_REGION_PATHS];
path_of pw_region_paths[PW_REGION_PATHS];
int32_t pw_n_region_names = 1; /* handle 0 measures cost */
int32_t pw_n_region_paths, pw_n_region_events;
thread *pw_region_threads, *pw_initial_thread;
_Thread_local thread *pw_own_thread;
pthread_mutex_t pw_regions_lock = PTHREAD_MUTEX_INITIALIZER;

/* FNV-1a: http://www.isthe.com/chongo/tech/comp/fnv */
static const uint32_t fnv_offset = 2166136261U, fnv_prime = 16777619U;

static pthread_once_t events_selected = PTHREAD_ONCE_INIT;
static pthread_key_t end_of_thread;
static const char *events_wanted;
char pw_first_fault[PW_REGION_FAULT];

int32_t pw_record_fault(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&pw_regions_lock);
    if (pw_first_fault[0] == '\0') vsnprintf(pw_first_fault, sizeof pw_first_fault, format, arguments);
    pthread_mutex_unlock(&pw_regions_lock);
    va_end(arguments);
    return -1;
}

int32_t pw_regions_take_fault(char *text, int32_t length)
{
    pthread_mutex_lock(&pw_regions_lock);
    snprintf(text, (size_t)length, "%s", pw_first_fault);
    pw_first_fault[0] = '\0';
    pthread_mutex_unlock(&pw_regions_lock);
    return text[0] != '\0';
}

/* When a thread ends. */
static void leave_thread(void *of)
{
    thread *t = of;
    pw_own_thread = NULL; /* a region in a later destructor starts with new state */
    if (t->depth > 0) pw_record_fault("region '%s' was still open when its thread ended", name_of(t->stack[t->depth - 1].handle));
    t->depth = 0;
    pw_counters_close(t->counters);
    t->counters = NULL;
    pthread_mutex_lock(&pw_regions_lock);
    t->taken = 0;
    pthread_mutex_unlock(&pw_regions_lock);
}

static void choose_events(void)
{
    pthread_key_create(&end_of_thread, leave_thread);
    pw_n_region_events = pw_counters_choose(events_wanted);
}

thread *pw_enter_thread(void)
{
    pthread_once(&events_selected, choose_events);
    pthread_mutex_lock(&pw_regions_lock);
    thread *t = pw_region_threads;
    while (t != NULL && t->taken) t = t->next;
    if (t == NULL) {
        t = calloc(1, sizeof *t);
        if (t != NULL) {
            for (int i = 0; i < cached_paths; i++) t->path[i].path = unknown_path;
            for (int i = 0; i < cached_names; i++) t->name[i].handle = -1;
            t->next = pw_region_threads;
            pw_region_threads = t;
        }
    }
    if (t != NULL) t->taken = 1;
    pthread_mutex_unlock(&pw_regions_lock);
    if (t == NULL) {
        pw_record_fault("cannot allocate memory for the regions of a thread");
        return NULL;
    }
    t->counters = pw_counters_open();
    pthread_setspecific(end_of_thread, t);
    if (getpid() == (pid_t)syscall(SYS_gettid)) __atomic_store_n(&pw_initial_thread, t, __ATOMIC_RELEASE);
    pw_own_thread = t;
    return t;
}

int32_t pw_regions_open(const char *events)
{
    events_wanted = events;
    here();
    return pw_n_region_events;
}

static int32_t look_up_name(const char *wanted, int32_t time_alone)
{
    size_t length = strlen(wanted);
    if (length == 0 || length >= PW_REGION_NAME || strchr(wanted, '/') != NULL)
        return pw_record_fault("'%.80s' is not a valid region name: use 1 to %d characters without '/'", wanted,
                               PW_REGION_NAME - 1);
    int32_t handle = -1;
    pthread_mutex_lock(&pw_regions_lock);
    for (int32_t i = 1; i < pw_n_region_names && handle < 0; i++)
        if (strcmp(name_of(i), wanted) == 0) handle = i;
    if (handle < 0 && pw_n_region_names < PW_REGION_PATHS) {
        handle = pw_n_region_names;
        memcpy(pw_region_names[handle].text, wanted, length + 1);
        pw_region_names[handle].length = (int32_t)length;
        pw_region_names[handle].uncounted = time_alone;
        __atomic_store_n(&pw_n_region_names, pw_n_region_names + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&pw_regions_lock);
    return handle >= 0 ? handle : pw_record_fault("no room for region '%s': at most %d names", wanted, PW_REGION_PATHS - 1);
}

int32_t pw_region_handle_uncounted(const char *name)
{
    return look_up_name(name, 1);
}

/* From this thread's cache if possible. */
int32_t pw_region_handle(const char *name)
{
    thread *t = here();
    if (t == NULL) return -1;
    uint32_t hash = fnv_offset;
    for (const char *c = name; *c != '\0'; c++) hash = (hash ^ (unsigned char)*c) * fnv_prime;
    known_name *known = &t->name[hash % cached_names];
    if (known->handle >= 0 && strcmp(known->name, name) == 0) return known->handle;
    int32_t handle = look_up_name(name, 0);
    if (handle >= 0) {
        known->handle = handle;
        snprintf(known->name, sizeof known->name, "%s", name);
    }
    return handle;
}

int32_t pw_look_up_path(int32_t parent, int32_t handle)
{
    int32_t match = unknown_path;
    pthread_mutex_lock(&pw_regions_lock);
    for (int32_t i = 0; i < pw_n_region_paths && match < 0; i++)
        if (pw_region_paths[i].parent == parent && pw_region_paths[i].handle == handle) match = i;
    if (match < 0 && pw_n_region_paths < PW_REGION_PATHS) {
        pw_region_paths[pw_n_region_paths] = (path_of){handle, parent};
        match = pw_n_region_paths++;
    }
    pthread_mutex_unlock(&pw_regions_lock);
    return match;
}
