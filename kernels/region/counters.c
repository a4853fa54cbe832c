/* Selects the source that counts each event. */
#define _GNU_SOURCE
#include "counters.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* In the order of preference. Software events are requested from the kernel and not through PAPI, which counts
   only in user mode and so never sees a context switch. */
static const pw_counter_source *const source[] = {
    &pw_perf_software_source,
    &pw_usage_source,
#if defined(PW_PAPI)
    &pw_papi_source,
#endif
    &pw_perf_hardware_source,
};
enum { n_sources = sizeof source / sizeof source[0] };

static const char default_events[] = "perf::PAGE-FAULTS,perf::CONTEXT-SWITCHES,perf::TASK-CLOCK";

typedef struct {
    int32_t n;
    char event[pw_most_events][pw_event_length];
    int32_t place[pw_most_events]; /* among all events that count */
} share;

static share shares[n_sources];
static int32_t n_events, n_refused, multiplex;
static char event[pw_most_events][pw_event_length];
static char refused[pw_most_events][pw_event_length], refusal[pw_most_events][pw_reason_length];

struct pw_counters {
    int32_t complete;
    void *set[n_sources];
};

static const char *without(const char *prefix, const char *name)
{
    return strncasecmp(name, prefix, strlen(prefix)) == 0 ? name + strlen(prefix) : name;
}

const char *pw_short_event(const char *name)
{
    return without("perf::", name);
}

int pw_same_event(const char *a, const char *b)
{
    a = pw_short_event(a);
    b = pw_short_event(b);
    for (; *a != '\0' && *b != '\0'; a++, b++) {
        int x = *a == '_' ? '-' : tolower((unsigned char)*a), y = *b == '_' ? '-' : tolower((unsigned char)*b);
        if (x != y) return 0;
    }
    return *a == *b;
}

pw_software_event pw_software_event_of(const char *name)
{
    static const struct {
        const char *name;
        pw_software_event event;
    } known[] = {
        {"task-clock", pw_task_clock},
        {"cpu-clock", pw_cpu_clock},
        {"page-faults", pw_page_faults},
        {"faults", pw_page_faults},
        {"minor-faults", pw_minor_faults},
        {"page-faults-min", pw_minor_faults},
        {"major-faults", pw_major_faults},
        {"page-faults-maj", pw_major_faults},
        {"context-switches", pw_context_switches},
        {"cs", pw_context_switches},
        {"cpu-migrations", pw_cpu_migrations},
        {"migrations", pw_cpu_migrations},
        {"alignment-faults", pw_alignment_faults},
        {"emulation-faults", pw_emulation_faults},
    };
    name = without("PERF_COUNT_SW_", pw_short_event(name));
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (pw_same_event(name, known[i].name)) return known[i].event;
    return pw_no_software_event;
}

/* Whether a comma-separated list contains the word; an empty list contains every word. */
static int listed(const char *list, const char *word)
{
    if (list == NULL || *list == '\0') return 1;
    size_t length = strlen(word);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += strspn(at, ", ");
        if (strncasecmp(at, word, length) == 0 && (at[length] == '\0' || at[length] == ',' || at[length] == ' ')) return 1;
    }
    return 0;
}

/* Assign the event to the first source that can count it together with its other events; 0 with the reasons of all sources
   that support it. */
static int place(const char *name, char *reason, int32_t length)
{
    const char *permitted = getenv("PAGEWISE_COUNTERS");
    int32_t written = 0;
    reason[0] = '\0';
#if !defined(PW_PAPI)
    if (listed(permitted, "papi")) written = snprintf(reason, (size_t)length, "built without PAPI");
#endif
    for (int s = 0; s < n_sources; s++) {
        if (!listed(permitted, source[s]->permission)) continue;
        share *mine = &shares[s];
        char why[pw_reason_length] = "";
        snprintf(mine->event[mine->n], pw_event_length, "%s", name);
        void *set = source[s]->open(mine->event, mine->n + 1, multiplex, why, sizeof why);
        if (set != NULL) {
            source[s]->close(set);
            mine->place[mine->n++] = n_events;
            snprintf(event[n_events++], pw_event_length, "%s", name);
            return 1;
        }
        if (why[0] == '\0' || written >= length) continue;
        written += snprintf(reason + written, (size_t)(length - written), "%s%s", written > 0 ? "; " : "", why);
    }
    if (reason[0] == '\0') snprintf(reason, (size_t)length, "no source in PAGEWISE_COUNTERS counts it");
    return 0;
}

int32_t pw_counters_choose(const char *events)
{
    if (events == NULL) events = getenv("PAGEWISE_EVENTS");
    if (events == NULL || *events == '\0') events = default_events;
    const char *wanted = getenv("PAGEWISE_MULTIPLEX");
    multiplex = wanted != NULL && strcmp(wanted, "") != 0 && strcmp(wanted, "0") != 0;
    char *list = strdup(events), *rest = list;
    if (list == NULL) return 0;
    for (char *name = strtok_r(list, ", ", &rest); name != NULL; name = strtok_r(NULL, ", ", &rest)) {
        if (n_refused == pw_most_events) break;
        char *reason = refusal[n_refused];
        if (n_events == pw_most_events)
            snprintf(reason, pw_reason_length, "at most %d events can be counted at once", pw_most_events);
        else if (strlen(name) >= pw_event_length)
            snprintf(reason, pw_reason_length, "its name has more than %d characters", pw_event_length - 1);
        else if (place(name, reason, pw_reason_length))
            continue;
        snprintf(refused[n_refused++], pw_event_length, "%.*s", pw_event_length - 1, name);
    }
    free(list);
    return n_events;
}

const char *pw_counters_event(int32_t i)
{
    return event[i];
}

const char *pw_counters_kind(void)
{
    static const char *const kinds[] = {"papi", "perf_event", "software"};
    for (int k = 0; k < 3; k++)
        for (int s = 0; s < n_sources; s++)
            if (shares[s].n > 0 && strcmp(source[s]->kind, kinds[k]) == 0) return kinds[k];
    return "";
}

int32_t pw_counters_refused(int32_t i, const char **event, const char **reason)
{
    if (i < 0 || i >= n_refused) return 0;
    *event = refused[i];
    *reason = refusal[i];
    return 1;
}

pw_counters *pw_counters_open(void)
{
    if (n_events == 0) return NULL;
    pw_counters *counters = calloc(1, sizeof *counters);
    if (counters == NULL) return NULL;
    counters->complete = 1;
    for (int s = 0; s < n_sources; s++) {
        char why[pw_reason_length];
        if (shares[s].n == 0) continue;
        counters->set[s] = source[s]->open(shares[s].event, shares[s].n, multiplex, why, sizeof why);
        if (counters->set[s] == NULL) counters->complete = 0;
    }
    return counters;
}

int32_t pw_counters_read(pw_counters *counters, int64_t *counts)
{
    if (counters == NULL || !counters->complete) return 0;
    for (int s = 0; s < n_sources; s++) {
        int64_t mine[pw_most_events];
        if (shares[s].n == 0) continue;
        if (!source[s]->read(counters->set[s], mine)) return 0;
        for (int32_t i = 0; i < shares[s].n; i++) counts[shares[s].place[i]] = mine[i];
    }
    return 1;
}

void pw_counters_close(pw_counters *counters)
{
    if (counters == NULL) return;
    for (int s = 0; s < n_sources; s++)
        if (counters->set[s] != NULL) source[s]->close(counters->set[s]);
    free(counters);
}
