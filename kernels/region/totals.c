/* Results: the threads' sums merged, events and their sources, cost. */
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pw_region_total *merged;
static int32_t n_merged;

static double seconds_of(int64_t nanoseconds)
{
    return 1e-9 * (double)nanoseconds;
}

static void copy(char *text, int32_t length, const char *from)
{
    snprintf(text, (size_t)length, "%s", from);
}

void pw_regions_event(int32_t i, char *name, int32_t length)
{
    copy(name, length, i >= 0 && i < pw_n_region_events ? pw_counters_event(i) : "");
}

void pw_regions_source(char *name, int32_t length)
{
    here();
    copy(name, length, pw_counters_kind());
}

int32_t pw_regions_refused(int32_t i, char *event, char *reason, int32_t length)
{
    const char *of, *why;
    here();
    if (!pw_counters_refused(i, &of, &why)) return 0;
    copy(event, length, of);
    copy(reason, length, why);
    return 1;
}

void pw_regions_unavailable(char *reason, int32_t length)
{
    const char *of, *why, *wanted = getenv("PAGEWISE_COUNTERS");
    here();
    copy(reason, length, "");
    if (pw_n_region_events > 0) return;
    if (wanted != NULL && strcmp(wanted, "none") == 0) {
        copy(reason, length, "switched off by PAGEWISE_COUNTERS=none");
        return;
    }
    int32_t written = 0;
    for (int32_t i = 0; written < length && pw_counters_refused(i, &of, &why); i++)
        written += snprintf(reason + written, (size_t)(length - written), "%s%s: %s", i > 0 ? "; " : "", of, why);
    if (written == 0) copy(reason, length, "PAGEWISE_EVENTS does not name an event");
}

/* The text of a path. */
static void write_path(int32_t at, char *text, int32_t length)
{
    int32_t names[PW_REGION_DEPTH + 1], depth = 0, written = 0;
    for (; at >= 0 && depth <= PW_REGION_DEPTH; at = pw_region_paths[at].parent) names[depth++] = pw_region_paths[at].handle;
    text[0] = '\0';
    while (depth-- > 0 && written < length)
        written += snprintf(text + written, (size_t)(length - written), "%s%s", written > 0 ? "/" : "", name_of(names[depth]));
}

static void merge_path(int32_t at)
{
    pw_region_total *total = &merged[n_merged];
    int64_t sum = 0, most = 0, inside = 0;
    memset(total, 0, sizeof *total);
    total->counted = pw_n_region_events > 0;
    for (const thread *t = pw_region_threads; t != NULL; t = t->next) {
        const sums *s = t->sum[at];
        if (s == NULL || s->calls == 0) continue;
        total->threads++;
        total->calls += s->calls;
        total->counted = total->counted && s->counted;
        sum += s->nanoseconds;
        inside += s->inside;
        if (s->nanoseconds > most) most = s->nanoseconds;
        for (int32_t i = 0; i < pw_n_region_events; i++) {
            total->counts[i] += s->counts[i];
            if (s->counts[i] > total->most[i]) total->most[i] = s->counts[i];
        }
    }
    if (total->threads == 0 || pw_region_paths[at].handle == of_cost) return;
    copy(total->name, sizeof total->name, name_of(pw_region_paths[at].handle));
    write_path(at, total->path, sizeof total->path);
    total->seconds = seconds_of(most);
    total->seconds_mean = seconds_of(sum) / total->threads;
    total->seconds_exclusive = seconds_of(sum > inside ? sum - inside : 0) / total->threads;
    n_merged++;
}

static void merge_inside(int32_t parent)
{
    for (int32_t i = 0; i < pw_n_region_paths; i++) {
        if (pw_region_paths[i].parent != parent) continue;
        merge_path(i);
        merge_inside(i);
    }
}

int32_t pw_regions_merge(void)
{
    const char *open = NULL;
    pthread_mutex_lock(&pw_regions_lock);
    for (const thread *t = pw_region_threads; t != NULL && open == NULL; t = t->next)
        if (t->depth > 0) open = name_of(t->stack[t->depth - 1].handle);
    free(merged);
    merged = calloc((size_t)pw_n_region_paths + 1, sizeof *merged);
    n_merged = 0;
    if (merged != NULL) merge_inside(unknown_path);
    pthread_mutex_unlock(&pw_regions_lock);
    if (open != NULL) pw_record_fault("region '%s' is still open", open);
    return n_merged;
}

void pw_regions_total(int32_t i, pw_region_total *total)
{
    memset(total, 0, sizeof *total);
    if (i >= 0 && i < n_merged) *total = merged[i];
}

void pw_regions_reset(void)
{
    pthread_mutex_lock(&pw_regions_lock);
    for (thread *t = pw_region_threads; t != NULL; t = t->next) {
        int64_t now = clock_now();
        for (int32_t i = 0; i < pw_n_region_paths; i++) {
            if (t->sum[i] == NULL) continue;
            memset(t->sum[i], 0, sizeof *t->sum[i]);
            t->sum[i]->counted = 1;
        }
        for (int32_t d = 0; d < t->depth; d++) {
            t->stack[d].start = now;
            t->stack[d].inside = 0;
            t->stack[d].counted = 0;
        }
    }
    pw_first_fault[0] = '\0';
    pthread_mutex_unlock(&pw_regions_lock);
}

void pw_regions_cost(double *pair, double *inside)
{
    const int batches = 9, pairs = 100;
    thread *t = here();
    *pair = *inside = 0.0;
    if (t == NULL || t->depth == PW_REGION_DEPTH) return;
    for (int b = 0; b < batches; b++) {
        int64_t own_time = 0, start = clock_now();
        for (int i = 0; i < pairs; i++) {
            int64_t nanoseconds;
            pw_region_begin(of_cost);
            pw_end_region(of_cost, -1, &nanoseconds);
            own_time += nanoseconds;
        }
        double both = seconds_of(clock_now() - start) / pairs;
        double shown = seconds_of(own_time) / pairs;
        if (b == 0 || both < *pair) *pair = both;
        if (b == 0 || shown < *inside) *inside = shown;
    }
}

void pw_regions_print(void)
{
    int32_t n = pw_regions_merge();
    char text[PW_REGION_FAULT];
    printf("%-32s %12s %7s %12s %12s %12s", "region", "calls", "threads", "seconds", "mean", "exclusive");
    for (int32_t e = 0; e < pw_n_region_events; e++) printf(" %s", pw_counters_event(e));
    printf("\n");
    for (int32_t i = 0; i < n; i++) {
        const pw_region_total *total = &merged[i];
        printf("%-32s %12lld %7d %12.6f %12.6f %12.6f", total->path, (long long)total->calls, (int)total->threads, total->seconds,
               total->seconds_mean, total->seconds_exclusive);
        for (int32_t e = 0; e < pw_n_region_events; e++) {
            int width = (int)strlen(pw_counters_event(e));
            if (total->counted)
                printf(" %*lld", width, (long long)total->counts[e]);
            else
                printf(" %*s", width, "-");
        }
        printf("\n");
    }
    pw_regions_unavailable(text, sizeof text);
    if (text[0] != '\0') printf("counters unavailable: %s\n", text);
    if (pw_regions_take_fault(text, sizeof text)) printf("fault: %s\n", text);
    fflush(stdout);
}
