/* Events through the system call (perf_event_open(2)), without a library. */
#define _GNU_SOURCE
#include "counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What a group reads as, for the read_format of open_event. */
enum { n_values, time_enabled, time_running, first_value };

/* Events in groups that count together: one group, or one per event if they are multiplexed. */
typedef struct {
    int32_t n_events, n_groups;
    int32_t file[pw_most_events];
    int32_t leader[pw_most_events], size[pw_most_events]; /* of each group */
} perf_set;

static int32_t open_event(uint32_t type, uint64_t config, int32_t leader, int user_only)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = type;
    attr.config = config;
    attr.disabled = leader < 0;
    attr.exclude_kernel = user_only != 0;
    attr.exclude_hv = user_only != 0;
    attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    return (int32_t)syscall(SYS_perf_event_open, &attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

static void close_set(void *of)
{
    perf_set *set = of;
    for (int32_t i = set->n_events - 1; i >= 0; i--) close(set->file[i]);
    free(set);
}

static int32_t read_set(void *of, int64_t *counts)
{
    const perf_set *set = of;
    int32_t done = 0;
    for (int32_t g = 0; g < set->n_groups; g++) {
        uint64_t group[first_value + pw_most_events];
        ssize_t wanted = (ssize_t)sizeof group[0] * (first_value + set->size[g]);
        if (read(set->file[set->leader[g]], group, sizeof group) < wanted) return 0;
        if (group[time_running] == 0 && group[time_enabled] > 0) return 0; /* it was never scheduled on a counter */
        for (int32_t i = 0; i < set->size[g]; i++) {
            uint64_t count = group[first_value + i];
            if (group[time_running] < group[time_enabled]) /* scaled by its share of the time */
                count = (uint64_t)((double)count * ((double)group[time_enabled] / (double)group[time_running]));
            counts[done++] = (int64_t)count;
        }
    }
    return 1;
}

/* Add an event to the set's last group, or to a new one. Returns 0 or the error. */
static int add_event(perf_set *set, uint32_t type, uint64_t config, int alone, int user_only)
{
    int new_group = set->n_groups == 0 || alone;
    int32_t file = open_event(type, config, new_group ? -1 : set->file[set->leader[set->n_groups - 1]], user_only);
    if (file < 0) return errno;
    if (new_group) {
        set->leader[set->n_groups] = set->n_events;
        set->size[set->n_groups++] = 0;
    }
    set->size[set->n_groups - 1]++;
    set->file[set->n_events++] = file;
    return 0;
}

/* Groups start when they are complete: in Linux 6.18, software events and clocks that join a running group do not
   count until the thread is next scheduled. */
static void start_set(const perf_set *set)
{
    for (int32_t g = 0; g < set->n_groups; g++) ioctl(set->file[set->leader[g]], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
}

static void *open_software(char (*events)[pw_event_length], int32_t n_events, int32_t multiplex, char *reason, int32_t length)
{
    static const uint64_t config[] = {
        [pw_task_clock] = PERF_COUNT_SW_TASK_CLOCK,
        [pw_cpu_clock] = PERF_COUNT_SW_CPU_CLOCK,
        [pw_page_faults] = PERF_COUNT_SW_PAGE_FAULTS,
        [pw_minor_faults] = PERF_COUNT_SW_PAGE_FAULTS_MIN,
        [pw_major_faults] = PERF_COUNT_SW_PAGE_FAULTS_MAJ,
        [pw_context_switches] = PERF_COUNT_SW_CONTEXT_SWITCHES,
        [pw_cpu_migrations] = PERF_COUNT_SW_CPU_MIGRATIONS,
        [pw_alignment_faults] = PERF_COUNT_SW_ALIGNMENT_FAULTS,
        [pw_emulation_faults] = PERF_COUNT_SW_EMULATION_FAULTS,
    };
    (void)multiplex; /* the kernel counts any number of them */
    reason[0] = '\0';
    if (pw_software_event_of(events[n_events - 1]) == pw_no_software_event) return NULL;
    perf_set *set = calloc(1, sizeof *set);
    if (set == NULL) return NULL;
    for (int32_t i = 0; i < n_events; i++) {
        pw_software_event event = pw_software_event_of(events[i]);
        int error = add_event(set, PERF_TYPE_SOFTWARE, config[event], 0, 0);
        /* Without permission to count in the kernel, events that happen only there would count as 0. */
        int kernel_only = event == pw_context_switches || event == pw_cpu_migrations;
        if ((error == EACCES || error == EPERM) && !kernel_only) error = add_event(set, PERF_TYPE_SOFTWARE, config[event], 0, 1);
        if (error != 0) {
            snprintf(reason, (size_t)length, "perf_event: %s", strerror(error));
            close_set(set);
            return NULL;
        }
    }
    start_set(set);
    return set;
}

struct known_event {
    const char *name;
    uint64_t config;
};

static const struct known_event generic[] = {
    {"cycles", PERF_COUNT_HW_CPU_CYCLES},
    {"cpu-cycles", PERF_COUNT_HW_CPU_CYCLES},
    {"PAPI_TOT_CYC", PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_COUNT_HW_INSTRUCTIONS},
    {"PAPI_TOT_INS", PERF_COUNT_HW_INSTRUCTIONS},
    {"cache-references", PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache-misses", PERF_COUNT_HW_CACHE_MISSES},
    {"branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-instructions", PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"PAPI_BR_INS", PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-misses", PERF_COUNT_HW_BRANCH_MISSES},
    {"PAPI_BR_MSP", PERF_COUNT_HW_BRANCH_MISSES},
    {"bus-cycles", PERF_COUNT_HW_BUS_CYCLES},
    {"stalled-cycles-frontend", PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    {"idle-cycles-frontend", PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    {"stalled-cycles-backend", PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    {"idle-cycles-backend", PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    {"ref-cycles", PERF_COUNT_HW_REF_CPU_CYCLES},
    {"PAPI_REF_CYC", PERF_COUNT_HW_REF_CPU_CYCLES},
};

static const struct known_event cache[] = {
    {"L1-dcache", PERF_COUNT_HW_CACHE_L1D}, {"L1-icache", PERF_COUNT_HW_CACHE_L1I}, {"LLC", PERF_COUNT_HW_CACHE_LL},
    {"dTLB", PERF_COUNT_HW_CACHE_DTLB},     {"iTLB", PERF_COUNT_HW_CACHE_ITLB},     {"branch", PERF_COUNT_HW_CACHE_BPU},
    {"node", PERF_COUNT_HW_CACHE_NODE},
};

static const struct known_event operation[] = {
    {"loads", PERF_COUNT_HW_CACHE_OP_READ << 8},
    {"load-misses", PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16},
    {"stores", PERF_COUNT_HW_CACHE_OP_WRITE << 8},
    {"store-misses", PERF_COUNT_HW_CACHE_OP_WRITE << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16},
    {"prefetches", PERF_COUNT_HW_CACHE_OP_PREFETCH << 8},
    {"prefetch-misses", PERF_COUNT_HW_CACHE_OP_PREFETCH << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16},
};

/* The generic event of a name of libpfm or perf, or of a PAPI preset; r and hexadecimal digits are a raw event of
   the processor, as in perf. Returns 0 if unknown. */
static int hardware_event(const char *name, uint32_t *type, uint64_t *config)
{
    char full[pw_event_length];
    name = pw_short_event(name);
    *type = PERF_TYPE_HARDWARE;
    for (size_t i = 0; i < sizeof generic / sizeof generic[0]; i++) {
        *config = generic[i].config;
        snprintf(full, sizeof full, "PERF_COUNT_HW_%s", generic[i].name);
        if (pw_same_event(name, generic[i].name) || pw_same_event(name, full)) return 1;
    }
    *type = PERF_TYPE_HW_CACHE;
    for (size_t i = 0; i < sizeof cache / sizeof cache[0]; i++)
        for (size_t j = 0; j < sizeof operation / sizeof operation[0]; j++) {
            *config = cache[i].config | operation[j].config;
            snprintf(full, sizeof full, "%s-%s", cache[i].name, operation[j].name);
            if (pw_same_event(name, full)) return 1;
        }
    *type = PERF_TYPE_RAW;
    char *end;
    if (name[0] != 'r' || name[1] == '\0') return 0;
    *config = strtoull(name + 1, &end, 16);
    return *end == '\0';
}

static void *open_hardware(char (*events)[pw_event_length], int32_t n_events, int32_t multiplex, char *reason, int32_t length)
{
    uint32_t type;
    uint64_t config;
    reason[0] = '\0';
    if (!hardware_event(events[n_events - 1], &type, &config)) return NULL;
    perf_set *set = calloc(1, sizeof *set);
    if (set == NULL) return NULL;
    for (int32_t i = 0; i < n_events; i++) {
        hardware_event(events[i], &type, &config);
        int error = add_event(set, type, config, multiplex, 1);
        if (error != 0) {
            const char *why = strerror(error);
            if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV) why = "this machine does not support this event";
            if (error == EACCES || error == EPERM) why = "not permitted (/proc/sys/kernel/perf_event_paranoid)";
            if (error == EINVAL && i > 0) why = "no free counter is left (PAGEWISE_MULTIPLEX=1 multiplexes events)";
            snprintf(reason, (size_t)length, "perf_event: %s", why);
            close_set(set);
            return NULL;
        }
    }
    start_set(set);
    int64_t counts[pw_most_events];
    if (read_set(set, counts)) return set;
    snprintf(reason, (size_t)length, "perf_event: no counter is free (PAGEWISE_MULTIPLEX=1 multiplexes events)");
    close_set(set);
    return NULL;
}

const pw_counter_source pw_perf_software_source = {"perf_event", "software", open_software, read_set, close_set};
const pw_counter_source pw_perf_hardware_source = {"perf_event", "perf_event", open_hardware, read_set, close_set};
