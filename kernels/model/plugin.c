/* The plug-in for QEMU's user-mode emulation that passes a program's memory accesses between its marks to the simulator
   (kernels/region/marks.h), and writes the counts as JSON when it ends.

       qemu-x86_64 -plugin libpagewise-model.so,geometry=FILE,out=FILE[,pages=observed|base|huge|fjmpg][,whole=on] PROGRAM ...

   `geometry` is a list of lines (geometry.h); `pages` selects the pages of the program; `whole` simulates the program from
   its start to its end, with or without marks. One thread is simulated: the first that passes a mark. */
#define _GNU_SOURCE
#include "../region/marks.h"
#include "model.h"
#include "tracer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { most_regions = 64, most_depth = 16, most_name = 63, most_sites = 40 };

/* An instruction that accesses memory, as translated. */
struct site {
    struct site *next;
    const char *symbol;
    qemu_plugin_meminfo_t info; /* of its last access, and its decoded form */
    uint32_t bytes;
    bool store;
    enum { plain, begins, ends } kind;
    uint64_t accesses, tlb, walks, refills;
};

struct region {
    char name[most_name + 1];
    uint64_t calls;
    uint64_t count[PW_COUNTS];
};

static struct {
    struct pw_model *model;
    struct pw_observer observer;
    const char *out, *pages;
    bool whole, active;
    int64_t vcpu; /* of the simulated thread; -1: none yet */
    uint64_t elsewhere; /* concurrent accesses of other threads */
    uint64_t unseen, unseen_before;
    struct site *sites;
    /* The last piece: a wide access arrives in several. */
    const struct site *last;
    uint64_t last_end, last_block;
    bool last_store;
    int n_regions, depth;
    struct region region[most_regions];
    int open[most_depth];
    uint64_t begun[most_depth][PW_COUNTS];
    uint64_t total[PW_COUNTS];
    bool aarch64;
    int32_t sys_madvise, sys_changes[5];
} the;

/* Of the interface, see tracer.h. */
__attribute__((visibility("default"))) const int qemu_plugin_version = 1;

/* Instructions of all entered blocks, in all threads; and those among them whose accesses QEMU does not report. */
static uint64_t executed, executed_unseen;

/* A plug-in cannot end the program normally: the error goes to standard error, where the runner reads it. */
__attribute__((noreturn, format(printf, 1, 2))) static void stop(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("pagewise model: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    _exit(125);
}

static void read_counts(uint64_t counts[PW_COUNTS])
{
    pw_model_counts(the.model, counts);
    counts[PW_INSTRUCTIONS] = executed;
}

/* Read the program's memory, which is this process's own; reading fails safely if it is not mapped. */
static bool peek(uint64_t address, void *value, size_t bytes)
{
    struct iovec here = {value, bytes}, there = {(void *)(uintptr_t)address, bytes};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

/* The program's memory may be on other pages now. */
static void ask_again(void)
{
    if (the.observer.program == NULL) the.observer.program = realpath(qemu_plugin_path_to_binary(), NULL);
    pw_mapping_forget(&the.model->mapping);
    pw_observer_forget(&the.observer);
}

static int region_called(const char *name)
{
    for (int i = 0; i < the.n_regions; i++)
        if (strcmp(the.region[i].name, name) == 0) return i;
    if (the.n_regions == most_regions) stop("more than %d regions", most_regions);
    snprintf(the.region[the.n_regions].name, sizeof the.region[0].name, "%s", name);
    return the.n_regions++;
}

static void begin(unsigned vcpu, uint64_t address)
{
    struct pw_mark mark;
    if (!peek(address - offsetof(struct pw_mark, name), &mark, sizeof mark))
        stop("the program's addresses differ from those of the emulating process; remove qemu's -B and -R");
    if (mark.magic != PW_MARK_MAGIC) return;
    if (the.vcpu < 0) the.vcpu = vcpu;
    if (vcpu != the.vcpu) return;
    char name[most_name + 1] = "";
    const size_t length = mark.length < 0 ? 0 : mark.length > most_name ? most_name : (size_t)mark.length;
    if (length > 0 && !peek((uint64_t)(uintptr_t)mark.name, name, length)) stop("cannot read a region's name");
    if (the.depth == most_depth) stop("regions are nested more than %d levels deep", most_depth);
    if (the.depth == 0) {
        ask_again();
        the.unseen_before = executed_unseen;
        the.active = true;
    }
    the.open[the.depth] = region_called(name);
    read_counts(the.begun[the.depth++]);
}

static void end(unsigned vcpu, uint64_t address)
{
    uint64_t magic, now[PW_COUNTS];
    if (!peek(address - offsetof(struct pw_mark, name), &magic, sizeof magic) || magic != PW_MARK_MAGIC) return;
    if (vcpu != the.vcpu || the.depth == 0) return;
    read_counts(now);
    the.depth--;
    struct region *region = &the.region[the.open[the.depth]];
    region->calls++;
    bool within_itself = false;
    for (int i = 0; i < the.depth; i++) within_itself |= the.open[i] == the.open[the.depth];
    for (int i = 0; i < PW_COUNTS; i++) {
        const uint64_t counted = now[i] - the.begun[the.depth][i];
        if (!within_itself) region->count[i] += counted;
        if (the.depth == 0) the.total[i] += counted;
    }
    if (the.depth == 0) {
        the.unseen += executed_unseen - the.unseen_before;
        the.active = the.whole;
    }
}

static void on_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
    struct site *site = data;
    if (!the.active && site->kind == plain) return;
    if (info != site->info) {
        site->info = info;
        site->bytes = UINT32_C(1) << qemu_plugin_mem_size_shift(info);
        site->store = qemu_plugin_mem_is_store(info);
    }
    if (site->kind != plain) {
        if (!site->store || site->bytes != sizeof(char *)) return;
        if (site->kind == begins) begin(vcpu, address);
        if (site->kind == ends) end(vcpu, address);
        return;
    }
    if (vcpu != the.vcpu) {
        the.elsewhere++;
        return;
    }
    struct pw_model *model = the.model;
    const uint64_t block = executed;
    const bool piece = site == the.last && address == the.last_end && block == the.last_block && site->store == the.last_store;
    the.last = site;
    the.last_end = address + site->bytes;
    the.last_block = block;
    the.last_store = site->store;
    if (piece) {
        if ((the.last_end - 1) >> model->line_shift == model->last_line - 1) return;
    } else {
        site->accesses++;
        model->count[site->store ? PW_STORES : PW_LOADS]++;
    }
    const uint32_t missed = pw_model_access(model, address, site->bytes, site->store);
    if (missed == 0) return;
    site->tlb += (missed & PW_MISSED_TLB) != 0;
    site->walks += (missed & PW_MISSED_ALL_TLBS) != 0;
    site->refills += (missed & PW_MISSED_CACHE) != 0;
}

/* SVE's loads and stores, except those of whole registers (LDR, STR) and prefetches: QEMU up to 7.2 does not report these
   accesses to plug-ins. Encodings: Arm ARM for A-profile (DDI 0487), C4.1, SVE: bits 31..25 of the four groups of memory
   instructions are 1xx0010. */
static bool is_unseen(const struct qemu_plugin_insn *instruction)
{
    uint32_t code;
    if (!the.aarch64 || qemu_plugin_insn_size(instruction) != sizeof code) return false;
    memcpy(&code, qemu_plugin_insn_data(instruction), sizeof code);
    if ((code & UINT32_C(0x9e000000)) != UINT32_C(0x84000000)) return false;
    const bool prefetch = (code & UINT32_C(0xffc08000)) == UINT32_C(0x85c00000);
    const bool load = (code & UINT32_C(0xffc0a000)) == UINT32_C(0x85800000);
    const bool store = (code & UINT32_C(0xffc0a000)) == UINT32_C(0xe5800000);
    return !load && !store && !prefetch;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    const size_t instructions = qemu_plugin_tb_n_insns(block);
    qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64, &executed, instructions);
    for (size_t i = 0; i < instructions; i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
        struct site *site = calloc(1, sizeof *site);
        if (site == NULL) stop("out of memory");
        site->next = the.sites;
        site->info = UINT32_MAX;
        site->symbol = qemu_plugin_insn_symbol(instruction);
        if (site->symbol != NULL && strcmp(site->symbol, "pw_mark_begin") == 0) site->kind = begins;
        if (site->symbol != NULL && strcmp(site->symbol, "pw_mark_end") == 0) site->kind = ends;
        the.sites = site;
        if (is_unseen(instruction))
            qemu_plugin_register_vcpu_insn_exec_inline(instruction, QEMU_PLUGIN_INLINE_ADD_U64, &executed_unseen, 1);
        qemu_plugin_register_vcpu_mem_cb(instruction, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, site);
    }
}

/* User-mode QEMU accepts most advice without effect, but huge pages must take effect here. */
static void on_syscall(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t address, uint64_t bytes, uint64_t advice,
                       uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
    (void)id, (void)vcpu, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    if (number != the.sys_madvise) return;
    const int kept = errno, collapse = 25; /* MADV_COLLAPSE: Linux 6.1 */
    if (advice == MADV_HUGEPAGE || advice == MADV_NOHUGEPAGE || advice == (uint64_t)collapse)
        madvise((void *)(uintptr_t)address, bytes, (int)advice);
    errno = kept;
}

static void on_syscall_return(qemu_plugin_id_t id, unsigned vcpu, int64_t number, int64_t result)
{
    (void)id, (void)vcpu, (void)result;
    for (int i = 0; i < 5; i++)
        if (number == the.sys_changes[i]) ask_again();
}

static void write_counts(FILE *out, const uint64_t counts[PW_COUNTS])
{
    const char *separator = "";
    for (int i = 0; i < PW_COUNTS; i++) {
        const char *name = pw_model_name(the.model, (enum pw_count)i);
        if (name == NULL) continue;
        fprintf(out, "%s\"%s\":%" PRIu64, separator, name, counts[i]);
        separator = ",";
    }
}

/* As a JSON string: names of regions and symbols. */
static void write_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++)
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < ' ' || (unsigned char)*text >= 0x7f)
            fputc('?', out);
        else
            fputc(*text, out);
    fputc('"', out);
}

static int by_symbol(const void *a, const void *b)
{
    const struct site *const *left = a, *const *right = b;
    return strcmp((*left)->symbol, (*right)->symbol);
}

static int by_misses(const void *a, const void *b)
{
    const struct site *const *left = a, *const *right = b;
    if ((*left)->tlb != (*right)->tlb) return (*left)->tlb < (*right)->tlb ? 1 : -1;
    return strcmp((*left)->symbol, (*right)->symbol);
}

/* The functions with the most TLB misses. */
static void write_functions(FILE *out)
{
    size_t count = 0, functions = 0;
    for (struct site *site = the.sites; site != NULL; site = site->next) count += site->accesses > 0;
    struct site **sorted = malloc((count + 1) * sizeof *sorted);
    if (sorted == NULL) stop("out of memory");
    count = 0;
    for (struct site *site = the.sites; site != NULL; site = site->next) {
        if (site->accesses == 0) continue;
        if (site->symbol == NULL || site->symbol[0] == '\0') site->symbol = "(shared libraries)";
        sorted[count++] = site;
    }
    qsort(sorted, count, sizeof *sorted, by_symbol);
    for (size_t i = 0; i < count; i++) {
        if (functions > 0 && strcmp(sorted[functions - 1]->symbol, sorted[i]->symbol) == 0) {
            struct site *sum = sorted[functions - 1];
            sum->accesses += sorted[i]->accesses;
            sum->tlb += sorted[i]->tlb;
            sum->walks += sorted[i]->walks;
            sum->refills += sorted[i]->refills;
        } else {
            sorted[functions++] = sorted[i];
        }
    }
    qsort(sorted, functions, sizeof *sorted, by_misses);
    for (size_t i = 0; i < functions && i < most_sites; i++) {
        fprintf(out, "%s{\"function\":", i > 0 ? "," : "");
        write_text(out, sorted[i]->symbol);
        fprintf(out, ",\"ACCESSES\":%" PRIu64 ",\"L1D_TLB_REFILL\":%" PRIu64 ",\"PAGE_WALKS\":%" PRIu64
                     ",\"L1D_CACHE_REFILL\":%" PRIu64 "}",
                sorted[i]->accesses, sorted[i]->tlb, sorted[i]->walks, sorted[i]->refills);
    }
    free(sorted);
}

static void on_exit_of_program(qemu_plugin_id_t id, void *data)
{
    (void)id, (void)data;
    if (the.whole) {
        read_counts(the.total);
        the.unseen = executed_unseen;
    }
    the.active = false;
    FILE *out = fopen(the.out, "we");
    if (out == NULL) stop("cannot write %s: %s", the.out, strerror(errno));
    fputs("{\"geometry\":", out);
    write_text(out, the.model->geometry.name);
    fprintf(out, ",\"pages\":\"%s\",\"observed_by\":\"%s\",\"unclear_extents\":%" PRIu64 ",\"whole\":%s,\"open_regions\":%d,"
                 "\"accesses_of_other_threads\":%" PRIu64 ",\"unseen_instructions\":%" PRIu64 ",\"counts\":{",
            the.pages, the.observer.pagemap >= 0 ? "pagemap" : "smaps", the.observer.unclear, the.whole ? "true" : "false",
            the.depth, the.elsewhere, the.unseen);
    write_counts(out, the.total);
    fputs("},\"regions\":[", out);
    for (int i = 0; i < the.n_regions; i++) {
        fprintf(out, "%s{\"name\":", i > 0 ? "," : "");
        write_text(out, the.region[i].name);
        fprintf(out, ",\"calls\":%" PRIu64 ",\"counts\":{", the.region[i].calls);
        write_counts(out, the.region[i].count);
        fputs("}}", out);
    }
    fputs("],\"functions\":[", out);
    write_functions(out);
    fputs("]}\n", out);
    if (fclose(out) != 0) stop("cannot write %s: %s", the.out, strerror(errno));
}

/* The text of a file; stops if it cannot be read. */
static char *text_of(const char *name)
{
    enum { most = 1 << 16 };
    FILE *file = fopen(name, "re");
    char *text = calloc(1, most);
    if (file == NULL || text == NULL) stop("cannot read %s: %s", name, strerror(errno));
    const size_t length = fread(text, 1, most - 1, file);
    text[length] = '\0';
    fclose(file);
    return text;
}

/* System calls that change the memory behind addresses. Returns false for a target whose call numbers are unknown here. */
static bool know_syscalls(const char *target)
{
    /* mmap, munmap, mremap, brk, madvise */
    static const int32_t x86_64[5] = {9, 11, 25, 12, 28}, aarch64[5] = {222, 215, 216, 214, 233};
    const int32_t *numbers = strcmp(target, "x86_64") == 0 ? x86_64 : strcmp(target, "aarch64") == 0 ? aarch64 : NULL;
    if (numbers == NULL) return false;
    the.aarch64 = numbers == aarch64;
    memcpy(the.sys_changes, numbers, sizeof the.sys_changes);
    the.sys_madvise = numbers[4];
    return true;
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    static const char *const rules[] = {"observed", "base", "huge", "fjmpg"};
    static bool (*const asks[])(void *, uint64_t) = {pw_observer_is_huge, NULL, NULL, pw_observer_is_data};
    const char *geometry_file = NULL;
    the.vcpu = -1;
    the.pages = rules[0];
    for (int i = 0; i < argc; i++) {
        const char *value = strchr(argv[i], '=');
        if (value == NULL) stop("'%s' needs a value", argv[i]);
        const size_t length = (size_t)(value++ - argv[i]);
        if (strncmp(argv[i], "geometry", length) == 0)
            geometry_file = value;
        else if (strncmp(argv[i], "out", length) == 0)
            the.out = strdup(value);
        else if (strncmp(argv[i], "pages", length) == 0)
            the.pages = strdup(value);
        else if (strncmp(argv[i], "whole", length) == 0)
            the.whole = strcmp(value, "on") == 0;
        else
            stop("unknown argument '%s'", argv[i]);
    }
    if (geometry_file == NULL || the.out == NULL) stop("geometry=FILE and out=FILE are required");
    if (info->system_emulation || !know_syscalls(info->target_name))
        stop("only user-mode emulation of x86_64 and aarch64 is supported, not %s", info->target_name);
    struct pw_geometry geometry;
    char fault[PW_GEOMETRY_TEXT + 1], *text = text_of(geometry_file);
    if (!pw_geometry_read(text, &geometry, fault)) stop("%s: %s", geometry_file, fault);
    free(text);
    the.model = pw_model_open(&geometry);
    if (the.model == NULL) stop("out of memory");
    int rule = 0;
    while (rule < 4 && strcmp(the.pages, rules[rule]) != 0) rule++;
    if (rule == 4) stop("pages=%s must be observed, base, huge or fjmpg", the.pages);
    pw_observer_open(&the.observer);
    pw_mapping_set(&the.model->mapping, (enum pw_mapping_rule)rule, asks[rule], &the.observer);
    if (the.whole) {
        the.vcpu = 0;
        the.active = true;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, on_syscall_return);
    qemu_plugin_register_atexit_cb(id, on_exit_of_program, NULL);
    return 0;
}
