/* The plug-in for QEMU's user-mode emulation that passes a program's memory accesses between its marks to the simulator
   (kernels/region/marks.h), and writes the counts as JSON when it ends.

       qemu-x86_64 -plugin libpagewise-model.so,geometry=FILE,out=FILE[,pages=observed|base|huge|fjmpg][,whole=on][,origins=on] PROGRAM ...

   `geometry` is a list of lines (geometry.h); `pages` selects the pages of the program; `whole` simulates the program from
   its start to its end, with or without marks; `origins` counts TLB misses by the origin of the memory (origins.h), of all
   threads, each with the TLBs of one core. Otherwise one thread is simulated: the first that passes a mark. A child that the program
   forks is not simulated. */
#define _GNU_SOURCE
#include "../region/marks.h"
#include "origin_calls.h"
#include "origin_events.h"
#include "origins.h"
#include "plugin.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

struct trace trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Of the interface, see tracer.h. */
__attribute__((visibility("default"))) const int qemu_plugin_version = 1;

/* Instructions whose accesses QEMU does not report. */
static uint64_t executed_unseen;

/* The system call that this thread is in. */
static __thread uint64_t arguments[most_arguments];
static __thread bool forks;

static void read_counts(uint64_t counts[PW_COUNTS])
{
    memset(counts, 0, PW_COUNTS * sizeof *counts);
    for (int t = 0; t < most_threads; t++) {
        uint64_t of_thread[PW_COUNTS];
        if (trace.thread[t].model == NULL) continue;
        pw_model_counts(trace.thread[t].model, of_thread);
        for (int i = 0; i < PW_COUNTS; i++) counts[i] += of_thread[i];
    }
    counts[PW_INSTRUCTIONS] = trace.executed;
}

bool read_guest(uint64_t address, void *value, size_t bytes)
{
    struct iovec here = {value, bytes}, there = {(void *)(uintptr_t)address, bytes};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

/* The program's memory may be on other pages now. */
static void refresh_marks(void)
{
    if (trace.observer.program == NULL) trace.observer.program = realpath(qemu_plugin_path_to_binary(), NULL);
    pw_observer_forget(&trace.observer);
}

/* A core like that of the first thread. */
static struct pw_model *open_model(const struct pw_geometry *geometry)
{
    static bool (*const asks[])(void *, uint64_t) = {pw_observer_is_huge, NULL, NULL, pw_observer_is_data};
    struct pw_model *model = pw_model_open(geometry);
    if (model == NULL) stop("out of memory");
    pw_mapping_set(&model->mapping, trace.rule, asks[trace.rule], &trace.observer);
    model->only_misses = trace.origins;
    if (trace.origins) pw_model_open_on_huge(model, PW_FJMPG, pw_observer_is_data, &trace.observer);
    return model;
}

struct thread *thread_of(unsigned vcpu)
{
    if (vcpu >= most_threads) return NULL;
    struct thread *thread = &trace.thread[vcpu];
    if (thread->model != NULL) return thread;
    if (!trace.origins) return NULL;
    thread->model = open_model(&trace.model->geometry);
    return thread;
}

static int region_called(const char *name)
{
    for (int i = 0; i < trace.n_regions; i++)
        if (strcmp(trace.region[i].name, name) == 0) return i;
    if (trace.n_regions == most_regions) stop("more than %d regions", most_regions);
    snprintf(trace.region[trace.n_regions].name, sizeof trace.region[0].name, "%s", name);
    return trace.n_regions++;
}

/* The name in a mark, cut to the longest one. */
static void read_name(const struct pw_mark *mark, char name[most_name + 1])
{
    const size_t length = mark->length < 0 ? 0 : mark->length > most_name ? most_name : (size_t)mark->length;
    memset(name, 0, most_name + 1);
    if (length > 0 && !read_guest((uint64_t)(uintptr_t)mark->name, name, length)) stop("cannot read a mark's name");
}

/* An array of the program: its memory is of the sector that the geometry gives it. */
static void assign(uint64_t address)
{
    struct pw_mark mark;
    char name[most_name + 1];
    if (!read_guest(address - offsetof(struct pw_mark, name), &mark, sizeof mark) || mark.magic != PW_MARK_MAGIC) return;
    read_name(&mark, name);
    const struct pw_geometry *geometry = &trace.model->geometry;
    for (uint32_t i = 0; i < geometry->n_arrays; i++) {
        if (strcmp(geometry->array[i].name, name) != 0) continue;
        trace.assigned |= UINT32_C(1) << i;
        if (!pw_cache_assign(&trace.model->cache, (uint64_t)(uintptr_t)mark.array, (uint64_t)mark.bytes, geometry->array[i].sector))
            stop("the arrays of sectors are mapped more than %d times; use no --sweep", PW_MOST_ARRAYS);
    }
}

static void begin(unsigned vcpu, uint64_t address)
{
    struct pw_mark mark;
    if (!read_guest(address - offsetof(struct pw_mark, name), &mark, offsetof(struct pw_mark, array)))
        stop("the program's addresses differ from those of the emulating process; remove qemu's -B and -R");
    if (mark.magic != PW_MARK_MAGIC) return;
    if (trace.vcpu < 0 && vcpu < most_threads) trace.thread[trace.vcpu = vcpu].model = trace.model;
    if (vcpu != trace.vcpu) return;
    char name[most_name + 1];
    read_name(&mark, name);
    if (trace.depth == most_depth) stop("regions are nested more than %d levels deep", most_depth);
    if (trace.depth == 0) {
        refresh_marks();
        trace.unseen_before = executed_unseen;
        trace.active = true;
    }
    trace.open[trace.depth] = region_called(name);
    read_counts(trace.at_begin[trace.depth++]);
}

static void end(unsigned vcpu, uint64_t address)
{
    uint64_t magic, now[PW_COUNTS];
    if (!read_guest(address - offsetof(struct pw_mark, name), &magic, sizeof magic) || magic != PW_MARK_MAGIC) return;
    if (vcpu != trace.vcpu || trace.depth == 0) return;
    read_counts(now);
    trace.depth--;
    struct region *region = &trace.region[trace.open[trace.depth]];
    region->calls++;
    bool within_itself = false;
    for (int i = 0; i < trace.depth; i++) within_itself |= trace.open[i] == trace.open[trace.depth];
    for (int i = 0; i < PW_COUNTS; i++) {
        const uint64_t counted = now[i] - trace.at_begin[trace.depth][i];
        if (!within_itself) region->count[i] += counted;
        if (trace.depth == 0) trace.total[i] += counted;
    }
    if (trace.depth == 0) {
        trace.unseen += executed_unseen - trace.unseen_before;
        trace.active = trace.whole;
    }
}

/* The thread's TLBs and caches, which know the program's memory. */
static struct pw_model *model_of(struct thread *thread)
{
    const uint64_t changes = __atomic_load_n(&trace.observer.changes, __ATOMIC_ACQUIRE);
    if (changes != thread->changes) {
        thread->changes = changes;
        pw_model_forget(thread->model);
    }
    return thread->model;
}

/* An access of a simulated thread. */
static void simulate(struct thread *thread, struct site *site, uint64_t address)
{
    struct pw_model *model = model_of(thread);
    const uint64_t block = trace.executed;
    const bool piece = site == thread->last && address == thread->last_end && block == thread->last_block &&
                       site->store == thread->last_store;
    thread->last = site;
    thread->last_end = address + site->bytes;
    thread->last_block = block;
    thread->last_store = site->store;
    if (piece) {
        if ((thread->last_end - 1) >> model->line_shift == model->last_line - 1) return;
    } else {
        model->count[site->store ? PW_STORES : PW_LOADS]++;
    }
    const uint32_t missed = pw_model_access(model, address, site->bytes, site->store);
    site->accesses += !piece;
    site->tlb += (missed & PW_MISSED_TLB) != 0;
    site->walks += (missed & PW_MISSED_ALL_TLBS) != 0;
    site->refills += (missed & PW_MISSED_CACHE) != 0;
}

/* An access where origins are recorded, if it may change the TLBs. */
static void __attribute__((noinline)) look_up(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, struct site *site)
{
    struct thread *thread = thread_of(vcpu);
    if (!trace.active) return;
    if (thread == NULL) {
        trace.elsewhere++;
    } else if (!thread->paused) {
        const uint32_t bytes = UINT32_C(1) << qemu_plugin_mem_size_shift(info);
        const uint32_t missed = pw_model_access(model_of(thread), address, bytes, false);
        if (missed != 0) origins_missed(thread, site, address, missed);
    }
}

static void on_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
    struct site *site = data;
    if (!trace.active && site->kind == plain) return;
    if (info != __atomic_load_n(&site->info, __ATOMIC_ACQUIRE)) {
        if (!trace.started) pw_origins_stack(address);
        trace.started = true;
        site->bytes = UINT32_C(1) << qemu_plugin_mem_size_shift(info);
        site->store = qemu_plugin_mem_is_store(info);
        __atomic_store_n(&site->info, info, __ATOMIC_RELEASE);
    }
    if (site->kind != plain) {
        if (site->kind == not_of_program) return;
        if (!site->store || site->bytes != sizeof(char *)) return;
        if (site->kind == begins) begin(vcpu, address);
        if (site->kind == ends) end(vcpu, address);
        if (site->kind == array_starts) assign(address);
        return;
    }
    if (trace.origins) {
        look_up(vcpu, info, address, site);
        return;
    }
    struct thread *thread = thread_of(vcpu);
    if (thread == NULL)
        trace.elsewhere++;
    else
        simulate(thread, site, address);
}

/* Most accesses end here. Only those that miss need the instruction: the data of a large program's instructions are in no cache, and
   reading them takes longer than all else. */
static void on_access_of_origins(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *site)
{
    const struct thread *thread = &trace.thread[vcpu < most_threads ? vcpu : 0];
    const bool known = thread->model != NULL && thread->changes == __atomic_load_n(&trace.observer.changes, __ATOMIC_ACQUIRE);
    if (!known || vcpu >= most_threads || !pw_model_is_latest(thread->model, address)) look_up(vcpu, info, address, site);
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    const size_t instructions = qemu_plugin_tb_n_insns(block);
    /* The preloaded library is not part of the program. */
    const uint64_t start = qemu_plugin_tb_vaddr(block);
    if (trace.library_begin <= start && start < trace.library_end) return;
    qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64, &trace.executed, instructions);
    for (size_t i = 0; i < instructions; i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
        struct site *site = aligned_alloc(_Alignof(struct site), sizeof *site);
        if (site == NULL) stop("out of memory");
        memset(site, 0, sizeof *site);
        site->next = trace.sites;
        site->info = UINT32_MAX;
        site->place = qemu_plugin_insn_vaddr(instruction);
        site->symbol = qemu_plugin_insn_symbol(instruction);
        if (site->symbol != NULL && strcmp(site->symbol, "pw_mark_begin") == 0) site->kind = begins;
        if (site->symbol != NULL && strcmp(site->symbol, "pw_mark_end") == 0) site->kind = ends;
        if (site->symbol != NULL && strcmp(site->symbol, "pw_mark_array") == 0) site->kind = array_starts;
        trace.sites = site;
        if (is_unseen(instruction))
            qemu_plugin_register_vcpu_insn_exec_inline(instruction, QEMU_PLUGIN_INLINE_ADD_U64, &executed_unseen, 1);
        const bool known = trace.origins && trace.library_end > 0 && site->kind == plain;
        qemu_plugin_register_vcpu_mem_cb(instruction, known ? on_access_of_origins : on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, site);
    }
}

static void on_syscall(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                       uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
    (void)id, (void)a6, (void)a7, (void)a8;
    const uint64_t given[most_arguments] = {a1, a2, a3, a4};
    memcpy(arguments, given, sizeof arguments);
    const bool clones = number == trace.calls->forks[0], starts_thread = clones && (a1 & CLONE_THREAD) != 0;
    const enum changing_call change = change_of(number);
    if (starts_thread) trace.parallel = true;
    forks = !starts_thread && (clones || number == trace.calls->forks[1] || number == trace.calls->forks[2]);
    pthread_mutex_lock(&trace.lock);
    trace.children += forks;
    if (trace.origins && number == trace.calls->prctl && a1 == PW_ORIGIN_CALL) origins_reported(vcpu, a2, a3, a4, a5);
    if (trace.origins) origins_change(change, arguments);
    pthread_mutex_unlock(&trace.lock);
    /* User-mode QEMU accepts most advice without effect, but huge pages must take effect here. */
    const int kept = errno, collapse = 25; /* MADV_COLLAPSE: Linux 6.1 */
    if (change == call_madvise && (a3 == MADV_HUGEPAGE || a3 == MADV_NOHUGEPAGE || a3 == (uint64_t)collapse))
        madvise((void *)(uintptr_t)a1, a2, (int)a3);
    errno = kept;
}

static void on_syscall_return(qemu_plugin_id_t id, unsigned vcpu, int64_t number, int64_t result)
{
    (void)id, (void)vcpu;
    if (forks && getpid() != trace.process) {
        /* Another thread may have been changing the counts when it was copied, and held a lock. They cannot be held across the fork:
           QEMU waits there until all threads have left their instructions. */
        pthread_mutex_init(&trace.lock, NULL);
        pthread_mutex_init(&trace.observer.lock, NULL);
        trace.active = trace.origins = false;
    }
    forks = false;
    const enum changing_call change = change_of(number);
    if (change == changing_calls) return;
    refresh_marks();
    pthread_mutex_lock(&trace.lock);
    if (trace.origins && (result >= 0 || result < -4095)) origins_changed(change, arguments, (uint64_t)result);
    pthread_mutex_unlock(&trace.lock);
}

static void on_exit_of_program(qemu_plugin_id_t id, void *data)
{
    (void)id, (void)data;
    if (getpid() != trace.process) return;
    if (trace.whole) {
        read_counts(trace.total);
        trace.unseen = executed_unseen;
    }
    trace.active = false;
    const bool simulated = trace.whole || trace.n_regions > 0;
    for (uint32_t i = 0; simulated && i < trace.model->geometry.n_arrays; i++)
        if ((trace.assigned >> i & 1) == 0) stop("the program has no array %s for a sector", trace.model->geometry.array[i].name);
    write_report();
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    static const char *const rules[] = {"observed", "base", "huge", "fjmpg"};
    const char *geometry_file = NULL;
    trace.vcpu = -1;
    trace.process = getpid();
    trace.pages = rules[0];
    for (int i = 0; i < argc; i++) {
        const char *value = strchr(argv[i], '=');
        if (value == NULL) stop("'%s' needs a value", argv[i]);
        const size_t length = (size_t)(value++ - argv[i]);
        if (strncmp(argv[i], "geometry", length) == 0)
            geometry_file = value;
        else if (strncmp(argv[i], "out", length) == 0)
            trace.out = strdup(value);
        else if (strncmp(argv[i], "pages", length) == 0)
            trace.pages = strdup(value);
        else if (strncmp(argv[i], "whole", length) == 0)
            trace.whole = strcmp(value, "on") == 0;
        else if (strncmp(argv[i], "origins", length) == 0)
            trace.origins = strcmp(value, "on") == 0;
        else
            stop("unknown argument '%s'", argv[i]);
    }
    if (geometry_file == NULL || trace.out == NULL) stop("geometry=FILE and out=FILE are required");
    if (info->system_emulation || !know_target(info->target_name))
        stop("only user-mode emulation of x86_64 and aarch64 is supported, not %s", info->target_name);
    struct pw_geometry geometry;
    char fault[PW_GEOMETRY_TEXT + 1];
    if (!pw_geometry_read_file(geometry_file, &geometry, fault)) stop("%s: %s", geometry_file, fault);
    int rule = 0;
    while (rule < 4 && strcmp(trace.pages, rules[rule]) != 0) rule++;
    if (rule == 4) stop("pages=%s must be observed, base, huge or fjmpg", trace.pages);
    pw_observer_open(&trace.observer);
    trace.rule = (enum pw_mapping_rule)rule;
    trace.model = open_model(&geometry);
    if (trace.origins) pw_origins_open(&trace.executed, trace.model);
    if (trace.whole) trace.thread[trace.vcpu = 0].model = trace.model;
    trace.active = trace.whole;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, on_syscall_return);
    qemu_plugin_register_atexit_cb(id, on_exit_of_program, NULL);
    return 0;
}
