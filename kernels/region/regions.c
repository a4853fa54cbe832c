/* Regions: names, paths, each thread's stack and sums. A thread writes only its own; shared data, names and
   paths, only grow, under a lock, and threads cache their look-ups. */
#define _GNU_SOURCE
#include "counters.h"
#include "marks.h"
#include "region.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { cached = 256, cached_names = 64, unknown_path = -1, of_cost = 0 /* the handle of the region that measures cost */ };

typedef struct {
    int32_t handle, parent; /* parent: a path, or -1 */
} path_of;

typedef struct {
    int64_t calls, nanoseconds, inside; /* inside: of nested regions, on this thread */
    int32_t counted;
    int64_t counts[pw_most_events];
} sums;

/* A call that has begun. Another thread may read path and level: a thread that was forked in it. */
typedef struct {
    int32_t handle, path, level, again; /* again: number of times that it began inside itself */
    int64_t serial, start, inside;
    int32_t counted;
    int64_t counts[pw_most_events];
} passage;

typedef struct {
    int32_t parent, handle, path;
} known_path;

typedef struct {
    char name[PW_REGION_NAME];
    int32_t handle;
} known_name;

typedef struct thread {
    struct thread *next;
    int32_t taken, depth; /* taken: 0 when its thread has ended, and another may continue the sums */
    int64_t serial;
    pw_counters *counters;
    passage stack[PW_REGION_DEPTH];
    known_path path[cached];
    known_name name[cached_names];
    sums *sum[PW_REGION_PATHS];
} thread;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static const char *events_wanted;
static int32_t n_events;

static char name[PW_REGION_PATHS][PW_REGION_NAME];
static int32_t name_length[PW_REGION_PATHS], uncounted[PW_REGION_PATHS], n_names = 1; /* handle 0 measures cost */
static path_of path[PW_REGION_PATHS];
static int32_t n_paths;
static thread *threads, *initial;
static char fault[2 * PW_REGION_PATH];

static pw_region_total *merged;
static int32_t n_merged;

static _Thread_local thread *own;

/* OpenMP's, if the program uses OpenMP: the number of parallel regions around the caller. */
extern int omp_get_level(void) __attribute__((weak));

static inline int32_t level_now(void)
{
    return omp_get_level != NULL ? omp_get_level() : 0;
}

/* Names are only added: a thread's handle stays valid while others look up names. */
static inline int is_handle(int32_t handle)
{
    return handle >= 0 && handle < __atomic_load_n(&n_names, __ATOMIC_ACQUIRE);
}

static inline int64_t clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Record the first fault. Returns -1. */
static int32_t __attribute__((format(printf, 1, 2))) record_fault(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&lock);
    if (fault[0] == '\0') vsnprintf(fault, sizeof fault, format, arguments);
    pthread_mutex_unlock(&lock);
    va_end(arguments);
    return -1;
}

/* When a thread ends. */
static void leave_thread(void *of)
{
    thread *t = of;
    own = NULL; /* a region in a later destructor starts with new state */
    if (t->depth > 0) record_fault("region '%s' was still open when its thread ended", name[t->stack[t->depth - 1].handle]);
    t->depth = 0;
    pw_counters_close(t->counters);
    t->counters = NULL;
    pthread_mutex_lock(&lock);
    t->taken = 0;
    pthread_mutex_unlock(&lock);
}

static void choose_events(void)
{
    pthread_key_create(&key, leave_thread);
    n_events = pw_counters_choose(events_wanted);
}

/* The calling thread's state, made at its first region. NULL without memory. */
static thread *enter_thread(void)
{
    pthread_once(&once, choose_events);
    pthread_mutex_lock(&lock);
    thread *t = threads;
    while (t != NULL && t->taken) t = t->next;
    if (t == NULL) {
        t = calloc(1, sizeof *t);
        if (t != NULL) {
            for (int i = 0; i < cached; i++) t->path[i].path = unknown_path;
            for (int i = 0; i < cached_names; i++) t->name[i].handle = -1;
            t->next = threads;
            threads = t;
        }
    }
    if (t != NULL) t->taken = 1;
    pthread_mutex_unlock(&lock);
    if (t == NULL) {
        record_fault("cannot allocate memory for the regions of a thread");
        return NULL;
    }
    t->counters = pw_counters_open();
    pthread_setspecific(key, t);
    if (getpid() == (pid_t)syscall(SYS_gettid)) __atomic_store_n(&initial, t, __ATOMIC_RELEASE);
    own = t;
    return t;
}

static inline thread *here(void)
{
    return own != NULL ? own : enter_thread();
}

int32_t pw_regions_open(const char *events)
{
    events_wanted = events;
    here();
    return n_events;
}

static int32_t look_up_name(const char *wanted, int32_t time_alone)
{
    size_t length = strlen(wanted);
    if (length == 0 || length >= PW_REGION_NAME || strchr(wanted, '/') != NULL)
        return record_fault("'%.80s' is not a valid region name: use 1 to %d characters without '/'", wanted, PW_REGION_NAME - 1);
    int32_t handle = -1;
    pthread_mutex_lock(&lock);
    for (int32_t i = 1; i < n_names && handle < 0; i++)
        if (strcmp(name[i], wanted) == 0) handle = i;
    if (handle < 0 && n_names < PW_REGION_PATHS) {
        handle = n_names;
        memcpy(name[handle], wanted, length + 1);
        name_length[handle] = (int32_t)length;
        uncounted[handle] = time_alone;
        __atomic_store_n(&n_names, n_names + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return handle >= 0 ? handle : record_fault("no room for region '%s': at most %d names", wanted, PW_REGION_PATHS - 1);
}

int32_t pw_region_handle(const char *wanted)
{
    return look_up_name(wanted, 0);
}

int32_t pw_region_handle_uncounted(const char *wanted)
{
    return look_up_name(wanted, 1);
}

/* The handle of a name, from this thread's cache if possible. */
static int32_t handle_of(const char *wanted)
{
    thread *t = here();
    if (t == NULL) return -1;
    uint32_t hash = 2166136261u; /* FNV-1a: http://www.isthe.com/chongo/tech/comp/fnv */
    for (const char *c = wanted; *c != '\0'; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
    known_name *known = &t->name[hash % cached_names];
    if (known->handle >= 0 && strcmp(known->name, wanted) == 0) return known->handle;
    int32_t handle = pw_region_handle(wanted);
    if (handle >= 0) {
        known->handle = handle;
        snprintf(known->name, sizeof known->name, "%s", wanted);
    }
    return handle;
}

/* The path of a region inside another path. -1 if there are too many. */
static int32_t look_up_path(int32_t parent, int32_t handle)
{
    int32_t match = unknown_path;
    pthread_mutex_lock(&lock);
    for (int32_t i = 0; i < n_paths && match < 0; i++)
        if (path[i].parent == parent && path[i].handle == handle) match = i;
    if (match < 0 && n_paths < PW_REGION_PATHS) {
        path[n_paths] = (path_of){handle, parent};
        match = n_paths++;
    }
    pthread_mutex_unlock(&lock);
    return match;
}

static inline int32_t path_inside(thread *t, int32_t parent, int32_t handle)
{
    known_path *known = &t->path[((uint32_t)parent * 31u + (uint32_t)handle) % cached];
    if (known->path < 0 || known->parent != parent || known->handle != handle)
        *known = (known_path){parent, handle, look_up_path(parent, handle)};
    return known->path;
}

/* The parent of a thread's outermost region: the region that the initial thread had open when it forked this one. */
static int32_t forked_in(const thread *t, int32_t level)
{
    const thread *master = __atomic_load_n(&initial, __ATOMIC_ACQUIRE);
    if (master == NULL || master == t || level == 0) return unknown_path;
    for (int32_t d = __atomic_load_n(&master->depth, __ATOMIC_ACQUIRE) - 1; d >= 0; d--)
        if (__atomic_load_n(&master->stack[d].level, __ATOMIC_RELAXED) < level)
            return __atomic_load_n(&master->stack[d].path, __ATOMIC_RELAXED);
    return unknown_path;
}

static sums *new_sums(thread *t, int32_t at)
{
    t->sum[at] = calloc(1, sizeof(sums));
    if (t->sum[at] != NULL) t->sum[at]->counted = 1;
    return t->sum[at];
}

static int32_t read_counts(thread *t, int64_t *counts)
{
    return n_events == 0 ? 0 : pw_counters_read(t->counters, counts);
}

static inline int64_t token_of(const passage *p)
{
    return p->serial << 20 | (p->again & 0xfffff);
}

int64_t pw_region_enter(int32_t handle)
{
    thread *t = here();
    if (!is_handle(handle) || t == NULL) return 0;
    passage *outer = t->depth > 0 ? &t->stack[t->depth - 1] : NULL;
    if (outer != NULL && outer->handle == handle) {
        outer->again++;
        return token_of(outer);
    }
    if (t->depth == PW_REGION_DEPTH) {
        record_fault("region '%s' is nested too deeply: at most %d levels are possible", name[handle], PW_REGION_DEPTH);
        return 0;
    }
    int32_t level = level_now();
    int32_t at = path_inside(t, outer != NULL ? outer->path : forked_in(t, level), handle);
    if (at < 0 || (t->sum[at] == NULL && new_sums(t, at) == NULL)) {
        record_fault("no room for another path of region '%s': at most %d are possible", name[handle], PW_REGION_PATHS);
        return 0;
    }
    passage *p = &t->stack[t->depth];
    p->handle = handle;
    __atomic_store_n(&p->path, at, __ATOMIC_RELAXED);
    __atomic_store_n(&p->level, level, __ATOMIC_RELAXED);
    p->again = 0;
    p->serial = ++t->serial;
    p->inside = 0;
    __atomic_store_n(&t->depth, t->depth + 1, __ATOMIC_RELEASE);
    p->counted = uncounted[handle] ? 0 : read_counts(t, p->counts);
    if (handle != of_cost) pw_mark_begin(name[handle], name_length[handle]);
    p->start = clock_now();
    return token_of(p);
}

/* End the innermost region. `nanoseconds`: of the call, measured by another thread, or -1. */
static int64_t end_innermost(thread *t, int64_t nanoseconds)
{
    int64_t now = clock_now(), counts[pw_most_events];
    passage *p = &t->stack[t->depth - 1];
    sums *sum = t->sum[p->path];
    sum->calls++;
    if (p->again > 0) {
        p->again--;
        return now - p->start;
    }
    if (p->handle != of_cost) pw_mark_end();
    if (nanoseconds < 0) nanoseconds = now - p->start;
    sum->nanoseconds += nanoseconds;
    sum->inside += p->inside;
    if (n_events > 0) {
        if (p->counted && read_counts(t, counts))
            for (int32_t i = 0; i < n_events; i++) sum->counts[i] += counts[i] > p->counts[i] ? counts[i] - p->counts[i] : 0;
        else
            sum->counted = 0;
    }
    __atomic_store_n(&t->depth, t->depth - 1, __ATOMIC_RELEASE);
    if (t->depth > 0 && p->handle != of_cost) t->stack[t->depth - 1].inside += nanoseconds;
    return nanoseconds;
}

/* Make the region the innermost one. 0 if it already is; otherwise a fault is recorded, and regions open inside it are
   abandoned. */
static int32_t unwind(thread *t, int32_t handle)
{
    if (t->depth > 0 && t->stack[t->depth - 1].handle == handle) return 0;
    if (t->depth == 0) return record_fault("region '%s' ends, but no region is open on this thread", name[handle]);
    const char *innermost = name[t->stack[t->depth - 1].handle];
    int32_t d = t->depth - 1;
    while (d >= 0 && t->stack[d].handle != handle) d--;
    if (d < 0) return record_fault("region '%s' ends inside region '%s', but has not begun", name[handle], innermost);
    record_fault("region '%s' ends inside region '%s', which is still open", name[handle], innermost);
    for (int32_t inner = t->depth - 1; inner > d; inner--) pw_mark_end();
    __atomic_store_n(&t->depth, d + 1, __ATOMIC_RELEASE);
    return -1;
}

static int32_t end_region(int32_t handle, int64_t given, int64_t *nanoseconds)
{
    thread *t = here();
    *nanoseconds = 0;
    if (!is_handle(handle) || t == NULL) return -1;
    int32_t status = unwind(t, handle);
    if (t->depth > 0 && t->stack[t->depth - 1].handle == handle) *nanoseconds = end_innermost(t, given);
    return status;
}

int32_t pw_region_begin(int32_t handle)
{
    return pw_region_enter(handle) > 0 ? 0 : -1;
}

int32_t pw_region_end(int32_t handle)
{
    int64_t nanoseconds;
    return end_region(handle, -1, &nanoseconds);
}

int32_t pw_region_end_timed(int32_t handle, int64_t *nanoseconds)
{
    return end_region(handle, -1, nanoseconds);
}

int32_t pw_region_end_after(int32_t handle, int64_t nanoseconds)
{
    int64_t unused;
    return end_region(handle, nanoseconds, &unused);
}

int32_t pw_region_begin_named(const char *wanted)
{
    return pw_region_begin(handle_of(wanted));
}

int32_t pw_region_end_named(const char *wanted)
{
    return pw_region_end(handle_of(wanted));
}

int32_t pw_region_end_named_timed(const char *wanted, int64_t *nanoseconds)
{
    return pw_region_end_timed(handle_of(wanted), nanoseconds);
}

int32_t pw_region_leave(int32_t handle, int64_t token)
{
    thread *t = here();
    if (!is_handle(handle) || t == NULL) return -1;
    int open = 0;
    for (int32_t d = 0; d < t->depth && !open; d++)
        open = t->stack[d].serial == token >> 20 && t->stack[d].again >= (token & 0xfffff);
    if (!open) return record_fault("region '%s' ends with its object, but has ended or began on another thread", name[handle]);
    return pw_region_end(handle);
}

static void copy(char *text, int32_t length, const char *from)
{
    snprintf(text, (size_t)length, "%s", from);
}

int32_t pw_regions_take_fault(char *text, int32_t length)
{
    pthread_mutex_lock(&lock);
    copy(text, length, fault);
    fault[0] = '\0';
    pthread_mutex_unlock(&lock);
    return text[0] != '\0';
}

void pw_regions_event(int32_t i, char *text, int32_t length)
{
    copy(text, length, i >= 0 && i < n_events ? pw_counters_event(i) : "");
}

void pw_regions_source(char *text, int32_t length)
{
    here();
    copy(text, length, pw_counters_kind());
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
    if (n_events > 0) return;
    if (wanted != NULL && strcmp(wanted, "none") == 0) {
        copy(reason, length, "switched off by PAGEWISE_COUNTERS=none");
        return;
    }
    int32_t written = 0;
    for (int32_t i = 0; written < length && pw_counters_refused(i, &of, &why); i++)
        written += snprintf(reason + written, (size_t)(length - written), "%s%s: %s", i > 0 ? "; " : "", of, why);
    if (written == 0) copy(reason, length, "PAGEWISE_EVENTS names no event");
}

int32_t pw_regions_counts(int64_t *counts)
{
    thread *t = here();
    return t == NULL ? 0 : read_counts(t, counts);
}

/* The text of a path. */
static void write_path(int32_t at, char *text, int32_t length)
{
    int32_t names[PW_REGION_DEPTH + 1], depth = 0, written = 0;
    for (; at >= 0 && depth <= PW_REGION_DEPTH; at = path[at].parent) names[depth++] = path[at].handle;
    text[0] = '\0';
    while (depth-- > 0 && written < length)
        written += snprintf(text + written, (size_t)(length - written), "%s%s", written > 0 ? "/" : "", name[names[depth]]);
}

static void merge_path(int32_t at)
{
    pw_region_total *total = &merged[n_merged];
    int64_t sum = 0, most = 0, inside = 0;
    memset(total, 0, sizeof *total);
    total->counted = n_events > 0;
    for (const thread *t = threads; t != NULL; t = t->next) {
        const sums *s = t->sum[at];
        if (s == NULL || s->calls == 0) continue;
        total->threads++;
        total->calls += s->calls;
        total->counted = total->counted && s->counted;
        sum += s->nanoseconds;
        inside += s->inside;
        if (s->nanoseconds > most) most = s->nanoseconds;
        for (int32_t i = 0; i < n_events; i++) total->counts[i] += s->counts[i];
    }
    if (total->threads == 0 || path[at].handle == of_cost) return;
    copy(total->name, sizeof total->name, name[path[at].handle]);
    write_path(at, total->path, sizeof total->path);
    total->seconds = 1e-9 * (double)most;
    total->seconds_mean = 1e-9 * (double)sum / total->threads;
    total->seconds_exclusive = 1e-9 * (double)(sum > inside ? sum - inside : 0) / total->threads;
    n_merged++;
}

static void merge_inside(int32_t parent)
{
    for (int32_t i = 0; i < n_paths; i++) {
        if (path[i].parent != parent) continue;
        merge_path(i);
        merge_inside(i);
    }
}

int32_t pw_regions_merge(void)
{
    const char *open = NULL;
    pthread_mutex_lock(&lock);
    for (const thread *t = threads; t != NULL && open == NULL; t = t->next)
        if (t->depth > 0) open = name[t->stack[t->depth - 1].handle];
    free(merged);
    merged = calloc((size_t)n_paths + 1, sizeof *merged);
    n_merged = 0;
    if (merged != NULL) merge_inside(unknown_path);
    pthread_mutex_unlock(&lock);
    if (open != NULL) record_fault("region '%s' is still open", open);
    return n_merged;
}

void pw_regions_total(int32_t i, pw_region_total *total)
{
    memset(total, 0, sizeof *total);
    if (i >= 0 && i < n_merged) *total = merged[i];
}

void pw_regions_reset(void)
{
    pthread_mutex_lock(&lock);
    for (thread *t = threads; t != NULL; t = t->next) {
        int64_t now = clock_now();
        for (int32_t i = 0; i < n_paths; i++) {
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
    fault[0] = '\0';
    pthread_mutex_unlock(&lock);
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
            pw_region_enter(of_cost);
            end_region(of_cost, -1, &nanoseconds);
            own_time += nanoseconds;
        }
        double both = 1e-9 * (double)(clock_now() - start) / pairs;
        double shown = 1e-9 * (double)own_time / pairs;
        if (b == 0 || both < *pair) *pair = both;
        if (b == 0 || shown < *inside) *inside = shown;
    }
}

void pw_regions_print(void)
{
    int32_t n = pw_regions_merge();
    char text[2 * PW_REGION_PATH];
    printf("%-32s %12s %7s %12s %12s %12s", "region", "calls", "threads", "seconds", "mean", "exclusive");
    for (int32_t e = 0; e < n_events; e++) printf(" %s", pw_counters_event(e));
    printf("\n");
    for (int32_t i = 0; i < n; i++) {
        const pw_region_total *total = &merged[i];
        printf("%-32s %12lld %7d %12.6f %12.6f %12.6f", total->path, (long long)total->calls, (int)total->threads, total->seconds,
               total->seconds_mean, total->seconds_exclusive);
        for (int32_t e = 0; e < n_events; e++) {
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
