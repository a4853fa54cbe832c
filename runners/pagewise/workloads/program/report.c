/* Preloaded by pagewise-exec and by the modules pagewise-pages: reports at the end of a process which pages it had.
 *
 * Memory is observed at the end and before much of it is given back (giving_back.h); what the process had at the
 * moment with most in memory counts. A process reports if it is the one that pagewise-exec became
 * (PAGEWISE_EXEC_PROCESS), or if it had at least 16 MiB.
 *   PAGEWISE_EXEC_POLICY  the page policy
 *   PAGEWISE_EXEC_REPORT  on standard error: `line` always, `warn` if the policy was not met, else nothing
 *   PAGEWISE_EXEC_RECORD  the file to which a line of JSON is appended (schema pagewise.exec/1)
 */
#define _GNU_SOURCE
#include "giving_back.h"
#include "table.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

enum { HEAP, ANONYMOUS, BSS, DATA, STACK, TEXT, FILES, SHARED, KINDS, NO_KIND = KINDS, MOST_BSS = 128, ROOM = 8192 };
static const char *const kinds[KINDS] = {"heap", "anonymous", "bss", "data", "stack", "text", "file", "shared"};
static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
/* As the runner: the least share of a policy's memory on huge pages, and the pages of a heap that show it. */
static const double enough = 0.8;
static const uint64_t fewest_pages_of_a_heap = 2, least_memory = 16u << 20, shortest = 10000000;

struct usage {
    uint64_t resident, huge, pool, eligible; /* pool: of `huge`, those of the hugetlb pool */
};
struct memory {
    uint64_t total, huge, unasked; /* unasked: transparent huge pages in mappings that were not advised */
    struct usage by_kind[KINDS];
};
struct mapping {
    uintptr_t start, end;
    char rights[5], name[PATH_MAX];
    uint64_t resident, huge, transparent; /* huge: transparent ones, and those of the pool */
    int is_advised;
};

static struct {
    int is_active, is_done, busy, bss_count;
    pid_t process;
    struct policy policy;
    uint64_t page, base, began, looked;
    struct stat errors;
    struct memory most;
    struct {
        uintptr_t data, start, end; /* of .data, and of .bss behind it */
    } bss[MOST_BSS];
} state;

static int is_looking(void) { return state.is_active; }

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int begins(const char *text, const char *with) { return !strncmp(text, with, strlen(with)); }

/* The same kinds as the runner's (smaps.py). */
static int kind_of(const struct mapping *one)
{
    static const char *const of_kernel[] = {"[vdso", "[vvar", "[vsyscall", "[uprobes", "[vectors", "[sigpage"};
    static const char *const shared[] = {"/dev/shm/", "/dev/hugepages/", "/SYSV", "/memfd:", "/dev/zero", "[anon_shmem"};
    const char *name = one->name;
    for (size_t number = 0; number < sizeof of_kernel / sizeof *of_kernel; number++)
        if (begins(name, of_kernel[number])) return NO_KIND;
    if (begins(name, "[heap")) return HEAP;
    if (begins(name, "[stack")) return STACK;
    for (size_t number = 0; number < sizeof shared / sizeof *shared; number++)
        if (begins(name, shared[number])) return SHARED;
    if (one->rights[3] == 's') return *name == '/' && !begins(name, "/anon_hugepage") ? FILES : SHARED;
    if (strchr(one->rights, 'x')) return TEXT;
    int is_remapped = begins(name, "/anon_hugepage");
    for (int number = 0; (!*name || is_remapped) && number < state.bss_count; number++) {
        uintptr_t first = is_remapped ? state.bss[number].data : state.bss[number].start;
        if (one->start + state.base > first && one->start < state.bss[number].end) return BSS;
    }
    if (!*name || begins(name, "[anon") || begins(name, "/anon_hugepage")) return ANONYMOUS;
    return strchr(one->rights, 'w') ? DATA : FILES;
}

static void add(struct memory *memory, const struct mapping *one)
{
    int kind = one->end ? kind_of(one) : NO_KIND;
    if (kind == NO_KIND) return;
    uint64_t from = (one->start + state.page - 1) & -state.page, to = one->end & -state.page;
    uint64_t room = to > from ? to - from : 0, outside = one->end - one->start - room;
    uint64_t eligible = one->resident > outside ? one->resident - outside : 0;
    if (eligible > room) eligible = room;
    struct usage *sum = &memory->by_kind[kind];
    sum->resident += one->resident;
    sum->huge += one->huge;
    sum->pool += one->huge - one->transparent;
    sum->eligible += eligible > one->huge ? eligible : one->huge;
    memory->total += one->resident;
    memory->huge += one->huge;
    if (!one->is_advised) memory->unasked += one->transparent;
}

static void read_line(const char *line, struct memory *memory, struct mapping *one)
{
    static const char *const huge[] = {"AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:"};
    static const char *const pool[] = {"Shared_Hugetlb:", "Private_Hugetlb:"};
    if (*line < 'A' || *line > 'Z') {
        add(memory, one);
        memset(one, 0, sizeof *one);
        int name = 0;
        sscanf(line, "%lx-%lx %4s %*x %*x:%*x %*u %n", &one->start, &one->end, one->rights, &name);
        snprintf(one->name, sizeof one->name, "%s", line + name);
        return;
    }
    if (begins(line, "Rss:")) one->resident += kib_after(line, "Rss:");
    for (size_t number = 0; number < sizeof huge / sizeof *huge; number++)
        if (begins(line, huge[number])) {
            one->huge += kib_after(line, huge[number]);
            one->transparent += kib_after(line, huge[number]);
        }
    if (begins(line, "VmFlags:")) one->is_advised = listed(line, "hg", ' ');
    for (size_t number = 0; number < sizeof pool / sizeof *pool; number++)
        if (begins(line, pool[number])) {
            one->huge += kib_after(line, pool[number]);
            one->resident += kib_after(line, pool[number]);
        }
}

/* The memory of this process by kind. Without malloc: it may be called from free. */
static void read_memory(struct memory *memory)
{
    static char block[65536], line[PATH_MAX + 128];
    static struct mapping one;
    size_t length = 0;
    int file = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
    memset(memory, 0, sizeof *memory);
    memset(&one, 0, sizeof one);
    for (ssize_t got; file >= 0 && (got = read(file, block, sizeof block)) > 0;)
        for (ssize_t at = 0; at < got; at++) {
            if (block[at] != '\n') {
                if (length < sizeof line - 1) line[length++] = block[at];
                continue;
            }
            line[length] = '\0';
            read_line(line, memory, &one);
            length = 0;
        }
    add(memory, &one);
    if (file >= 0) close(file);
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

static const char *rank(void)
{
    for (size_t number = 0; number < sizeof ranks / sizeof *ranks; number++) {
        const char *value = getenv(ranks[number]);
        if (value && *value && strspn(value, "0123456789") == strlen(value)) return value;
    }
    return NULL;
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
    int is_observed = state.most.total >= peak / 2;
    *coverage = state.most.total ? (double)state.most.huge / (double)state.most.total : 0.0;
    unsigned long setting = thp_setting(&state.policy);
    if (setting & UNLESS_ADVISED && state.most.unasked) return 0;
    if (setting == REFUSED_THP && state.most.huge) return 0;
    if (!wants_huge_pages(&state.policy)) return is_observed ? 1 : -1;
    /* smaps does not show transparent huge pages of other sizes. */
    if (!is_observed || (has(&state.policy, "thp") && state.page != pmd_size())) return -1;
    int met = 1;
    double least = 2.0;
    for (unsigned number = 0; number < PARTS; number++) {
        if (!(state.policy.parts >> number & 1) || !*parts[number].targets) continue;
        struct usage used = used_by(&parts[number]);
        uint64_t fewest = listed(parts[number].targets, "heap", ' ') && !is_from_pool(&state.policy)
                              ? fewest_pages_of_a_heap
                              : 1;
        /* An allocator may take transparent huge pages where the pool is short. */
        uint64_t wanted = strcmp(parts[number].size, "pool") ? used.huge : used.pool;
        double share = used.eligible ? (double)wanted / (double)used.eligible : 0.0;
        if (share < least) least = share;
        if (used.eligible < fewest * state.page) met = met ? -1 : 0;
        else if (share < enough) met = 0;
    }
    *coverage = least;
    return met;
}

static void write_record(const char *name, uint64_t peak, int met, double coverage)
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
    append(text, &at, ",\"process\":%d,\"rank\":%s,", (int)getpid(), rank() ? rank() : "null");
    append(text, &at, "\"seconds\":%.3f,", (double)(now() - state.began) / 1e9);
    append(text, &at, "\"page_size_bytes\":%llu,\"met\":%s,\"coverage\":%.6f,", (unsigned long long)state.page,
           met < 0 ? "null" : met ? "true" : "false", coverage > 1.0 ? 1.0 : coverage);
    append(text, &at, "\"peak_bytes\":%llu,\"observed_bytes\":%llu,\"kinds\":{", (unsigned long long)peak,
           (unsigned long long)state.most.total);
    const char *separator = "";
    for (int kind = 0; kind < KINDS; kind++) {
        const struct usage *used = &state.most.by_kind[kind];
        if (!used->resident) continue;
        append(text, &at, "%s\"%s\":{\"resident_bytes\":%llu,\"huge_bytes\":%llu,\"eligible_bytes\":%llu}", separator,
               kinds[kind], (unsigned long long)used->resident, (unsigned long long)used->huge,
               (unsigned long long)used->eligible);
        separator = ",";
    }
    append(text, &at, "}}\n");
    int file = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    /* One call, so that lines of several processes stay whole. */
    if (file < 0 || write(file, text, at) < 0) { /* the directory is gone, or the disk is full */ }
    if (file >= 0) close(file);
}

static void append_size(char text[ROOM], size_t *at, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes / 1024;
    int unit = 0;
    for (; value >= 1000 && unit < 3; unit++) value /= 1024;
    append(text, at, "%.3g %s", value, units[unit]);
}

static void write_line(uint64_t peak, int met)
{
    static char text[ROOM];
    struct stat errors;
    char policy[256];
    size_t at = 0;
    /* A daemon may have closed standard error, and opened another file with that number. */
    if (fstat(STDERR_FILENO, &errors) || errors.st_ino != state.errors.st_ino || errors.st_dev != state.errors.st_dev)
        return;
    write_name(&state.policy, policy, sizeof policy);
    append(text, &at, "pagewise: %s%s", met ? "" : "warning: not met: ", policy);
    if (rank()) append(text, &at, ", rank %s", rank());
    append(text, &at, ": peak memory ");
    append_size(text, &at, peak);
    append(text, &at, "; on huge pages");
    const char *separator = ":";
    for (int kind = 0; kind < KINDS; kind++) {
        const struct usage *used = &state.most.by_kind[kind];
        if (used->resident < state.page && !used->huge) continue;
        append(text, &at, "%s %s %.0f %% of ", separator, kinds[kind],
               100.0 * (double)used->huge / (double)used->resident);
        append_size(text, &at, used->resident);
        separator = ",";
    }
    if (*separator == ':') append(text, &at, ": nothing, no kind of its memory fills one");
    else if (state.most.total < peak / 2) append(text, &at, " (not verified: most of it was freed unobserved)");
    else if (met < 0) append(text, &at, " (not verified: too little memory of its kind, or a size that smaps hides)");
    append(text, &at, "\n");
    if (write(STDERR_FILENO, text, at) < 0) { /* nobody reads it */ }
}

static void finish(const char *status)
{
    const char *record = getenv("PAGEWISE_EXEC_RECORD"), *report = getenv("PAGEWISE_EXEC_REPORT");
    const char *started = getenv("PAGEWISE_EXEC_PROCESS");
    uint64_t peak = kib_after(status, "VmHWM:") + (is_from_pool(&state.policy) ? state.most.huge : 0);
    double coverage;
    if (peak < state.most.total) peak = state.most.total;
    if (peak < least_memory && (!started || atoi(started) != (int)state.process)) return;
    int met = is_met(peak, &coverage);
    if (record) write_record(record, peak, met, coverage);
    if (report && (!strcmp(report, "line") || (!strcmp(report, "warn") && !met))) write_line(peak, met);
}

/* Reading smaps takes time: it is read again when the memory has grown by a quarter. */
static void look(int at_end)
{
    static char status[8192];
    static struct memory memory;
    int before = errno;
    /* In a child of vfork the memory is its parent's. */
    if (!state.is_active || state.is_done || getpid() != state.process) return;
    uint64_t time = now();
    if ((!at_end && time - state.looked < shortest) || __atomic_exchange_n(&state.busy, 1, __ATOMIC_ACQUIRE)) return;
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

static int note_bss(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size, (void)unused;
    for (int number = 0; number < object->dlpi_phnum; number++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[number];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W) || state.bss_count == MOST_BSS) continue;
        uintptr_t start = object->dlpi_addr + segment->p_vaddr;
        state.bss[state.bss_count].data = start;
        state.bss[state.bss_count].start = start + segment->p_filesz;
        state.bss[state.bss_count++].end = start + segment->p_memsz;
    }
    return 0;
}

static void note_child(void)
{
    state.process = getpid();
    state.busy = 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("PAGEWISE_EXEC_POLICY"), *report = getenv("PAGEWISE_EXEC_REPORT");
    if (!name || parse_policy(name, &state.policy) || (!report && !getenv("PAGEWISE_EXEC_RECORD"))) return;
    int before = errno;
    uint64_t size = is_from_pool(&state.policy) ? pool_size() : pmd_size();
    state.page = state.policy.size ? state.policy.size : size;
    state.base = (uint64_t)sysconf(_SC_PAGESIZE);
    state.process = getpid();
    state.began = now();
    if (fstat(STDERR_FILENO, &state.errors)) memset(&state.errors, 0, sizeof state.errors);
    dl_iterate_phdr(note_bss, NULL);
    pthread_atfork(NULL, NULL, note_child);
    state.is_active = 1;
    errno = before;
}
