/* Software events if perf_event_open is refused, as in many containers: getrusage(2) of the calling thread,
   its clock, and, for migrations, /proc/thread-self/sched. */
#define _GNU_SOURCE
#include "counters.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    int32_t n_events, file; /* file: /proc/thread-self/sched if needed, or -1 */
    pw_software_event event[pw_most_events];
} usage_set;

/* nr_migrations of the thread; -1 if unknown. */
static int64_t migrations(int32_t file)
{
    char text[4096];
    ssize_t length = pread(file, text, sizeof text - 1, 0);
    if (length <= 0) return -1;
    text[length] = '\0';
    const char *line = strstr(text, "nr_migrations"), *value = line == NULL ? NULL : strchr(line, ':');
    return value == NULL ? -1 : strtoll(value + 1, NULL, 10);
}

static int32_t read_set(void *of, int64_t *counts)
{
    const usage_set *set = of;
    struct rusage usage;
    struct timespec clock;
    if (getrusage(RUSAGE_THREAD, &usage) != 0) return 0;
    for (int32_t i = 0; i < set->n_events; i++) {
        switch (set->event[i]) {
        case pw_task_clock:
        case pw_cpu_clock:
            if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &clock) != 0) return 0;
            counts[i] = (int64_t)clock.tv_sec * pw_nanoseconds + clock.tv_nsec;
            break;
        case pw_page_faults: counts[i] = usage.ru_minflt + usage.ru_majflt; break;
        case pw_minor_faults: counts[i] = usage.ru_minflt; break;
        case pw_major_faults: counts[i] = usage.ru_majflt; break;
        case pw_context_switches: counts[i] = usage.ru_nvcsw + usage.ru_nivcsw; break;
        case pw_cpu_migrations:
            if ((counts[i] = migrations(set->file)) < 0) return 0;
            break;
        default: return 0;
        }
    }
    return 1;
}

static void close_set(void *of)
{
    usage_set *set = of;
    if (set->file >= 0) close(set->file);
    free(set);
}

static void *open_set(char (*events)[pw_event_length], int32_t n_events, int32_t multiplex, char *reason, int32_t length)
{
    int64_t counts[pw_most_events];
    (void)multiplex;
    reason[0] = '\0';
    if (pw_software_event_of(events[n_events - 1]) == pw_no_software_event) return NULL;
    usage_set *set = calloc(1, sizeof *set);
    if (set == NULL) return NULL;
    set->file = -1;
    set->n_events = n_events;
    for (int32_t i = 0; i < n_events; i++) {
        set->event[i] = pw_software_event_of(events[i]);
        if (set->event[i] == pw_cpu_migrations && set->file < 0)
            set->file = open("/proc/thread-self/sched", O_RDONLY | O_CLOEXEC);
    }
    if (read_set(set, counts)) return set;
    snprintf(reason, (size_t)length, "getrusage does not report it");
    close_set(set);
    return NULL;
}

const pw_counter_source pw_usage_source = {"getrusage", "software", open_set, read_set, close_set};
