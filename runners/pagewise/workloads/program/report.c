/* Preloaded by pagewise-exec and by the modules pagewise-pages: observes the memory of a process, and reports at its end.
 *
 * Memory is observed at the end and before much of it is given back (giving_back.h); what the process had at the
 * moment with most in memory counts. A process reports if it is the one that pagewise-exec became
 * (PAGEWISE_EXEC_PROCESS), or if it had at least 16 MiB.
 *   PAGEWISE_EXEC_POLICY  the page policy
 *   PAGEWISE_EXEC_REPORT  on standard error: `line` always, `warn` if the policy was not met, else nothing
 *   PAGEWISE_EXEC_RECORD  the file to which a line of JSON is appended (schema pagewise.exec/1); where that fails, a line
 *                         on standard error has the reason
 *   PAGEWISE_SNAPSHOT     in an untimed trial run: /proc/self/smaps is copied to PAGEWISE_SNAPSHOT.<process>.<number>
 *                         each time, for programs that end before the runner looks; nothing is reported
 * The environment is read at the start, because a program may clear it, or write its title over it.
 */
#define _GNU_SOURCE
#include "children.h"
#include "giving_back.h"
#include "quiet.h"
#include "smaps.h"
#include "table.h"

#include <pthread.h>
#include <stdarg.h>

enum { ROOM = 8192, LONGEST_WAIT_MS = 100, MOST_SNAPSHOTS = 16 };
enum { NO_LINE, WARNING, LINE };
static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
/* As the runner: the least share of a policy's memory on huge pages, and the pages of a heap that show it. */
static const double enough = 0.8;
static const uint64_t fewest_pages_of_a_heap = 2, shortest = 10000000;

static struct {
    int is_active, is_done, is_filtered, is_refusing, busy, lines;
    pid_t process, started; /* started: the one that pagewise-exec became */
    struct policy policy;
    uint64_t began, looked;
    struct stat errors;
    struct memory most;
    char record[PATH_MAX], rank[16];
    const char *snapshots;
    int taken;
} state;

static int is_looking(void) { return state.is_active && !state.is_done && state.taken < MOST_SNAPSHOTS; }

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

__attribute__((format(printf, 3, 4))) static void append(char text[ROOM], size_t *at, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int length = vsnprintf(text + *at, ROOM - *at, format, values);
    va_end(values);
    if (length > 0) *at = *at + (size_t)length < ROOM ? *at + (size_t)length : ROOM - 1;
}

static void append_quoted(char text[ROOM], size_t *at, const char *from)
{
    append(text, at, "\"");
    for (; *from && *at < ROOM - 1024; from++) {
        if (*from == '"' || *from == '\\') append(text, at, "\\%c", *from);
        else if ((unsigned char)*from < 0x20 || (unsigned char)*from > 0x7e) append(text, at, "?");
        else append(text, at, "%c", *from);
    }
    append(text, at, "\"");
}

static void read_rank(void)
{
    for (size_t number = 0; !*state.rank && number < sizeof ranks / sizeof *ranks; number++) {
        const char *value = getenv(ranks[number]);
        if (value && strspn(value, "0123456789") == strlen(value) && strlen(value) < sizeof state.rank)
            strcpy(state.rank, value);
    }
}

static struct usage used_by(const struct part *part)
{
    struct usage sum = {0};
    for (int kind = 0; kind < KINDS; kind++)
        if (listed(part->targets, kinds[kind], ' ')) {
            sum.resident += state.most.by_kind[kind].resident;
            sum.huge += state.most.by_kind[kind].huge;
            sum.pool += state.most.by_kind[kind].pool;
            sum.eligible += state.most.by_kind[kind].eligible;
        }
    return sum;
}

/* Whether the policy was met: 1, 0, or -1 if that cannot be observed. coverage: the least of its parts. */
static int is_met(uint64_t peak, double *coverage)
{
    /* Memory was given back without `free`, as by operator delete of jemalloc. */
    int is_observed = state.most.total && state.most.total >= peak / 2 && !state.is_filtered;
    *coverage = state.most.total ? (double)state.most.huge / (double)state.most.total : 0.0;
    unsigned long setting = thp_setting(&state.policy);
    if (setting & UNLESS_ADVISED && state.most.unasked) return 0;
    if (setting == REFUSED_THP && state.most.huge) return 0;
    if (has(&state.policy, "where")) {
        const struct usage *selected = &state.most.advised;
        if (!is_observed || selected->eligible < sizes.page) return -1;
        *coverage = (double)selected->huge / (double)selected->eligible;
        if (*coverage < enough) return 0;
    }
    if (!wants_huge_pages(&state.policy)) return is_observed ? 1 : -1;
    /* smaps does not show transparent huge pages of other sizes. */
    if (!is_observed || (has(&state.policy, "thp") && sizes.page != pmd_size())) return -1;
    int met = 1;
    double least = 2.0;
    for (unsigned number = 0; number < PARTS; number++) {
        if (!(state.policy.parts >> number & 1) || !*parts[number].targets) continue;
        struct usage used = used_by(&parts[number]);
        uint64_t fewest = listed(parts[number].targets, "heap", ' ') && !needs(&state.policy, "pool")
                              ? fewest_pages_of_a_heap
                              : 1;
        /* An allocator may take transparent huge pages where the pool is short. */
        uint64_t wanted = strcmp(parts[number].source, "pool") ? used.huge : used.pool;
        double share = used.eligible ? (double)wanted / (double)used.eligible : 0.0;
        if (share < least) least = share;
        if (used.eligible < fewest * sizes.page) met = met ? -1 : 0;
        else if (share < enough) met = 0;
    }
    *coverage = least;
    return met;
}

/* Writes a line, which ends with a newline. A daemon may have closed standard error, and opened another file with its number. */
static void write_errors(char text[ROOM], size_t length)
{
    struct stat errors;
    text[length - 1] = '\0';
    plain(text);
    text[length - 1] = '\n';
    if (fstat(STDERR_FILENO, &errors) || errors.st_ino != state.errors.st_ino || errors.st_dev != state.errors.st_dev)
        return;
    write_quietly(STDERR_FILENO, text, length);
}

/* Also in a child of vfork, which has its parent's memory. */
static void note_unobserved(const char *program)
{
    char text[ROOM];
    size_t at = 0;
    int before = errno;
    if (!is_looking() || (!*state.record && state.lines != LINE)) return;
    /* A program is tried in each folder of PATH. */
    if (strchr(program, '/') && access(program, X_OK)) return;
    append(text, &at, "pagewise: warning: %.*s gets an environment without this page policy: ", PATH_MAX, program);
    append(text, &at, "it is not observed, nothing is recorded\n");
    write_errors(text, at);
    errno = before;
}

/* Whether a child that was not observed had more memory: the pages of this process do not show what the policy did. */
static int is_minor(uint64_t peak) { return unobserved.number && (!unobserved.largest || unobserved.largest > peak); }

static void write_record(uint64_t peak, int met, double coverage)
{
    static char text[ROOM], program[PATH_MAX];
    char policy[256], host[256] = "";
    size_t at = 0;
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length < 0 ? 0 : length] = '\0';
    gethostname(host, sizeof host - 1);
    write_name(&state.policy, policy, sizeof policy);
    append(text, &at, "{\"schema\":\"pagewise.exec/1\",\"policy\":\"%s\",\"program\":", policy);
    append_quoted(text, &at, program);
    append(text, &at, ",\"host\":");
    append_quoted(text, &at, host);
    append(text, &at, ",\"process\":%d,\"rank\":%s,", (int)getpid(), *state.rank ? state.rank : "null");
    append(text, &at, "\"seconds\":%.3f,", (double)(now() - state.began) / 1e9);
    append(text, &at, "\"page_size_bytes\":%llu,\"met\":%s,\"coverage\":%.6f,", (unsigned long long)sizes.page,
           met < 0 ? "null" : met ? "true" : "false", coverage > 1.0 ? 1.0 : coverage);
    append(text, &at, "\"peak_bytes\":%llu,\"observed_bytes\":%llu,\"unobserved_processes\":%u,\"kinds\":{",
           (unsigned long long)peak, (unsigned long long)state.most.total, unobserved.number);
    const char *separator = "";
    for (int kind = 0; kind < KINDS; kind++) {
        const struct usage *used = &state.most.by_kind[kind];
        if (!used->resident) continue;
        append(text, &at, "%s\"%s\":{\"resident_bytes\":%llu,\"huge_bytes\":%llu,\"eligible_bytes\":%llu}", separator,
               kinds[kind], (unsigned long long)used->resident, (unsigned long long)used->huge,
               (unsigned long long)used->eligible);
        separator = ",";
    }
    append(text, &at, "}");
    if (pagewise_selected_memory)
        append(text, &at, ",\"selected\":{\"allocated_bytes\":%llu,\"resident_bytes\":%llu,\"huge_bytes\":%llu}",
               (unsigned long long)pagewise_selected_memory().bytes, (unsigned long long)state.most.advised.resident,
               (unsigned long long)state.most.advised.huge);
    append(text, &at, "}\n");
    /* A pipe that nobody reads is not waited for. */
    int file = open(state.record, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
    int error = file < 0 ? errno : write_quietly(file, text, at);
    if (file >= 0) close(file);
    if (!error) return;
    at = 0;
    append(text, &at, "pagewise: error: the record was not written: %s: %s\n", state.record, strerror(error));
    write_errors(text, at);
}

static void append_size(char text[ROOM], size_t *at, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes / 1024;
    int unit = 0;
    for (; value >= 1000 && unit < 3; unit++) value /= 1024;
    append(text, at, "%.3g %s", value, units[unit]);
}

static void append_selected(char text[ROOM], size_t *at)
{
    const struct usage *used = &state.most.advised;
    append(text, at, "; selected: allocated ");
    append_size(text, at, pagewise_selected_memory().bytes);
    if (used->resident) append(text, at, ", on huge pages %.0f %% of ", 100.0 * (double)used->huge / (double)used->resident);
    if (used->resident) append_size(text, at, used->resident);
}

/* The selection is that of other files: the program was built again, or is another one. */
static void warn_of_change(void)
{
    char text[ROOM];
    size_t at = 0;
    append(text, &at, "pagewise: warning: no file of the selection is in this process, or the selection cannot be used: "
                      "no memory is selected; run `pagewise where` again\n");
    write_errors(text, at);
}

static void write_line(uint64_t peak, int met)
{
    static char text[ROOM];
    char policy[256];
    size_t at = 0;
    write_name(&state.policy, policy, sizeof policy);
    append(text, &at, "pagewise: %s%s", met ? "" : "warning: not met: ", policy);
    if (*state.rank) append(text, &at, ", rank %s", state.rank);
    append(text, &at, ": peak memory ");
    append_size(text, &at, peak);
    append(text, &at, "; on huge pages");
    const char *separator = ":";
    for (int kind = 0; kind < KINDS; kind++) {
        const struct usage *used = &state.most.by_kind[kind];
        if (used->resident < sizes.page && !used->huge) continue;
        append(text, &at, "%s %s %.0f %% of ", separator, kinds[kind],
               100.0 * (double)used->huge / (double)used->resident);
        append_size(text, &at, used->resident);
        separator = ",";
    }
    if (*separator != ',') append(text, &at, ": nothing, no kind of its memory fills one");
    if (pagewise_selected_memory) append_selected(text, &at);
    if (unobserved.number) append(text, &at, "; not observed: %u ended by signals", unobserved.number);
    const char *why = NULL;
    int is_shown = *separator == ',';
    if (is_minor(peak)) why = "these processes had more memory";
    else if (state.is_filtered) why = "from here on it forbids system calls";
    else if (is_shown && state.most.total < peak / 2) why = "most of it was freed unobserved";
    else if (is_shown && met < 0) why = "too little memory of its kind, or a size that smaps hides";
    if (why) append(text, &at, " (not verified: %s)", why);
    if (!met && state.is_refusing) append(text, &at, " (the program refuses transparent huge pages: PR_SET_THP_DISABLE)");
    append(text, &at, "\n");
    write_errors(text, at);
}

static void finish(const char *status)
{
    uint64_t peak = kib_after(status, "VmHWM:") + (needs(&state.policy, "pool") ? state.most.huge : 0);
    double coverage;
    state.is_refusing = strstr(status, "THP_enabled:\t0") && is_transparent(&state.policy);
    if (peak < state.most.total) peak = state.most.total;
    if (peak < least_memory && state.started != state.process && !unobserved.number) return;
    int met = is_met(peak, &coverage);
    if (is_minor(peak)) met = -1;
    if (*state.record) write_record(peak, met, coverage);
    if (pagewise_selected_memory && !pagewise_selected_memory().is_loaded && peak >= least_memory && state.lines)
        warn_of_change();
    if (state.lines == LINE || (state.lines == WARNING && !met)) write_line(peak, met);
}

static void copy_memory(void)
{
    char name[PATH_MAX], block[16384];
    int number = __atomic_fetch_add(&state.taken, 1, __ATOMIC_RELAXED);
    snprintf(name, sizeof name, "%s.%d.%d", state.snapshots, (int)getpid(), number);
    int from = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
    int to = from < 0 ? -1 : open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    for (ssize_t got; to >= 0 && (got = read(from, block, sizeof block)) > 0;)
        if (write_quietly(to, block, (size_t)got)) break;
    ssize_t length = readlink("/proc/self/exe", block + 4, sizeof block - 4);
    if (to >= 0 && length > 0) write_quietly(to, memcpy(block, "Of: ", 4), 4 + (size_t)length);
    if (to >= 0) close(to);
    if (from >= 0) close(from);
}

/* Reading smaps takes time: it is read again when the memory has grown by a quarter. */
static void look(int at_end)
{
    static char status[8192];
    static struct memory memory;
    int before = errno;
    /* In a child of vfork the memory is its parent's. */
    if (!state.is_active || state.is_done || getpid() != state.process) return;
    if (state.snapshots) {
        copy_memory();
        state.is_done = at_end;
        errno = before;
        return;
    }
    if (!at_end && now() - state.looked < shortest) return;
    /* The end waits a little for another thread that looks. */
    for (int wait = 0; __atomic_exchange_n(&state.busy, 1, __ATOMIC_ACQUIRE); wait++) {
        if (!at_end) return;
        if (wait == LONGEST_WAIT_MS) break;
        usleep(1000);
    }
    read_text("/proc/self/status", status, sizeof status);
    uint64_t total = kib_after(status, "VmRSS:") + kib_after(status, "HugetlbPages:");
    if (total >= least_memory ? total > state.most.total + (at_end ? 0 : state.most.total / 4) : at_end) {
        read_memory(&memory);
        if (memory.total >= state.most.total) state.most = memory;
    }
    state.looked = now();
    if (at_end) {
        state.is_done = 1;
        finish(status);
    }
    __atomic_store_n(&state.busy, 0, __ATOMIC_RELEASE);
    errno = before;
}

/* The memory until then counts: afterwards nothing can be reported. */
static void before_filter(void)
{
    if (!is_looking() || getpid() != state.process) return;
    state.is_filtered = 1;
    look(1);
}

static void note_child(void)
{
    if (state.is_done) return;
    state.process = getpid();
    state.busy = 0;
    unobserved.number = 0;
    unobserved.largest = 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("PAGEWISE_EXEC_POLICY"), *report = getenv("PAGEWISE_EXEC_REPORT");
    const char *record = getenv("PAGEWISE_EXEC_RECORD"), *started = getenv("PAGEWISE_EXEC_PROCESS");
    const char *snapshots = getenv("PAGEWISE_SNAPSHOT");
    if (!name || parse_policy(name, &state.policy) || (!report && !record && !snapshots)) return;
    int before = errno;
    state.snapshots = snapshots ? strdup(snapshots) : NULL;
    if (report) state.lines = !strcmp(report, "line") ? LINE : !strcmp(report, "warn") ? WARNING : NO_LINE;
    if (record) snprintf(state.record, sizeof state.record, "%s", record);
    state.started = started ? atoi(started) : 0;
    read_rank();
    uint64_t size = needs(&state.policy, "pool") ? pool_size() : pmd_size();
    sizes.page = state.policy.size ? state.policy.size : size;
    sizes.base = (uint64_t)sysconf(_SC_PAGESIZE);
    state.process = getpid();
    state.began = now();
    if (fstat(STDERR_FILENO, &state.errors)) memset(&state.errors, 0, sizeof state.errors);
    dl_iterate_phdr(note_bss, NULL);
    pthread_atfork(NULL, NULL, note_child);
    state.is_active = 1;
    errno = before;
}
