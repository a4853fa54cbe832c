/* The selection in this process: its return addresses and static objects, as modules are loaded, and which stacks are selected.
 *
 * A call is selected if the first return address on its stack that is none of a wrapper is that of a selected site, and the next
 * one its caller's. Most calls are decided by their first return address, which a table has with its meaning. An address
 * that is new to the table may be in a module that was loaded in the meantime (dlopen): the selection is then resolved again.
 */
#pragma once
#include "call_stack.h"
#include "elf_symbols.h"
#include "selection.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <sys/syscall.h>

/* Of a return address. A site whose caller is any has the flag ALONE. */
enum { PLAIN = 1, OF_WRAPPER = 2, OF_SITE = 4, ALONE = 8 };

static struct {
    struct selection selection;
    struct pair {
        uintptr_t site, caller;
    } *pairs; /* a hash table */
    size_t pair_room;
    unsigned long long loaded; /* how many modules had been loaded when the selection was resolved */
    unsigned loaded_modules;
    int resolving, has_unwinder;
    uintptr_t huge;
    uint64_t static_bytes; /* of selected static objects */
} process;

static volatile uint64_t known[1 << TABLE_BITS]; /* return address << 16 | its meaning */
OF_THREAD bool busy;

static void before_unwinding(void) { busy = true; }
static void after_unwinding(void) { busy = false; }

static uintptr_t resolved(const struct address *address)
{
    uintptr_t base = process.selection.modules[address->module].base;
    return address->offset && base ? base + address->offset : 0;
}

static void note_address(const struct address *address, unsigned meaning)
{
    uintptr_t at = resolved(address);
    volatile uint64_t *place = at ? place_of(known, at) : NULL;
    if (place) *place = (uint64_t)at << 16 | ((*place & 0xffff & ~(uint64_t)PLAIN) | meaning);
}

/* Where a pair is in the table, or would be. */
static struct pair *pair_at(uintptr_t site, uintptr_t caller)
{
    size_t at = (size_t)first_place(site ^ caller << 1);
    for (;; at++) {
        struct pair *pair = &process.pairs[at & (process.pair_room - 1)];
        if (!pair->site || (pair->site == site && pair->caller == caller)) return pair;
    }
}

static void note_pair(const struct entry *entry)
{
    uintptr_t site = resolved(&entry->first), caller = resolved(&entry->second);
    if (site && caller) *pair_at(site, caller) = (struct pair){site, caller};
}

/* Static objects of a module that has become known. */
struct sought {
    const struct dl_phdr_info *object;
    unsigned module;
    void (*move)(uintptr_t from, uintptr_t to); /* NULL: advise those that are zeroed, else move the others */
};

static void skip_segment(void *context, const char *name, uint64_t start, uint64_t bytes)
{
    (void)context, (void)name, (void)start, (void)bytes;
}

static int is_selected_object(unsigned module, const char *name)
{
    for (unsigned number = 0; number < process.selection.entry_count; number++) {
        const struct entry *entry = &process.selection.entries[number];
        if (entry->kind == STATIC && entry->first.module == module && !strcmp(entry->text, name)) return 1;
    }
    return 0;
}

static void take_object(void *context, const char *name, uint64_t start, uint64_t bytes)
{
    const struct sought *sought = context;
    const struct dl_phdr_info *object = sought->object;
    if (bytes < process.huge || !is_selected_object(sought->module, name)) return;
    uintptr_t from = (start + process.huge - 1) & -process.huge, to = (start + bytes) & -process.huge, relocated = 0;
    for (int number = 0; number < object->dlpi_phnum; number++)
        if (object->dlpi_phdr[number].p_type == PT_GNU_RELRO)
            relocated = object->dlpi_addr + object->dlpi_phdr[number].p_vaddr + object->dlpi_phdr[number].p_memsz;
    for (int number = 0; number < object->dlpi_phnum; number++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[number];
        uintptr_t first = object->dlpi_addr + segment->p_vaddr, zeroed = first + segment->p_filesz;
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W) || start < first || start >= first + segment->p_memsz)
            continue;
        if (to <= from || from < relocated) return;
        if (sought->move && from < zeroed) sought->move(from, to);
        if (sought->move) return;
        process.static_bytes += to - from;
        if (from >= zeroed) syscall(SYS_madvise, from, to - from, MADV_HUGEPAGE);
    }
}

static const char *path_of(const struct dl_phdr_info *object)
{
    return *object->dlpi_name ? object->dlpi_name : "/proc/self/exe";
}

/* The number of a loaded object in the selection, or that of its modules. */
static unsigned find_module(const struct dl_phdr_info *object, uintptr_t *base)
{
    char id[LONGEST_ID] = "", path[PATH_MAX];
    uintptr_t lowest = UINTPTR_MAX;
    unsigned module = 0;
    for (int number = 0; number < object->dlpi_phnum; number++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[number];
        if (segment->p_type == PT_NOTE && !*id)
            find_build_id((const char *)object->dlpi_addr + segment->p_vaddr, segment->p_memsz, id);
        if (segment->p_type == PT_LOAD && segment->p_vaddr < lowest) lowest = segment->p_vaddr;
    }
    *base = object->dlpi_addr + (lowest & ~(uintptr_t)0xfff);
    const char *name = id;
    if (!*id) {
        ssize_t length = *object->dlpi_name ? -1 : readlink("/proc/self/exe", path, sizeof path - 1);
        if (length >= 0) path[length] = '\0';
        const char *whole = length >= 0 ? path : object->dlpi_name, *slash = strrchr(whole, '/');
        name = slash ? slash + 1 : whole;
    }
    while (module < process.selection.module_count && strcmp(process.selection.modules[module].id, name)) module++;
    return module;
}

static int note_loaded(struct dl_phdr_info *object, size_t size, void *unused)
{
    uintptr_t base;
    (void)size, (void)unused;
    unsigned module = find_module(object, &base);
    if (module == process.selection.module_count || process.selection.modules[module].base == base) return 0;
    process.selection.modules[module].base = base;
    process.loaded_modules++;
    struct sought sought = {object, module, NULL};
    for (unsigned number = 0; number < process.selection.entry_count; number++)
        if (process.selection.entries[number].kind == STATIC && process.selection.entries[number].first.module == module) {
            pw_elf_each(path_of(object), base, skip_segment, take_object, &sought);
            break;
        }
    return 0;
}

static int count_loaded(struct dl_phdr_info *object, size_t size, void *count)
{
    (void)size;
    *(unsigned long long *)count = object->dlpi_adds;
    return 1;
}

/* Finds the selection's addresses in this process, if modules were loaded since then. */
static void resolve(void)
{
    unsigned long long loaded = 0;
    dl_iterate_phdr(count_loaded, &loaded);
    if (loaded == process.loaded || __atomic_exchange_n(&process.resolving, 1, __ATOMIC_ACQUIRE)) return;
    int before = errno;
    process.loaded = loaded;
    dl_iterate_phdr(note_loaded, NULL);
    for (unsigned number = 0; number < process.selection.entry_count; number++) {
        const struct entry *entry = &process.selection.entries[number];
        if (entry->kind == WRAPPER) note_address(&entry->first, OF_WRAPPER);
        if (entry->kind != ALLOCATION) continue;
        note_pair(entry);
        note_address(&entry->first, entry->second.offset ? OF_SITE : OF_SITE | ALONE);
    }
    errno = before;
    __atomic_store_n(&process.resolving, 0, __ATOMIC_RELEASE);
}

/* Reads the selection. huge: bytes of a huge page. Returns whether it can be used. */
static int open_selection(const char *file, uintptr_t huge)
{
    if (read_selection(file, &process.selection)) return 0;
    process.huge = huge;
    process.pair_room = 64;
    while (process.pair_room < 2 * (size_t)process.selection.entry_count) process.pair_room *= 2;
    size_t length = process.pair_room * sizeof *process.pairs;
    process.pairs = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (process.pairs == MAP_FAILED) return 0;
    resolve();
    return 1;
}

static int move_data(struct dl_phdr_info *object, size_t size, void *move)
{
    uintptr_t base;
    struct sought sought = {object, find_module(object, &base), *(void (**)(uintptr_t, uintptr_t))move};
    (void)size;
    if (sought.module < process.selection.module_count) pw_elf_each(path_of(object), base, skip_segment, take_object, &sought);
    return 0;
}

/* The meaning of a return address. */
static unsigned meaning_of(uintptr_t address)
{
    volatile uint64_t *place = place_of(known, address);
    if (!place) return PLAIN;
    if (!*place) {
        resolve();
        if (!*place) *place = (uint64_t)address << 16 | PLAIN;
    }
    return *place >> 16 == address ? *place & 0xffff : PLAIN;
}

static int is_pair(uintptr_t site, uintptr_t caller) { return pair_at(site, caller)->site != 0; }

enum { NO, YES, FURTHER };

/* Whether the stack up to this address is that of a selected allocation. site: the one before, 0 without one. */
static int step(uintptr_t *site, uintptr_t address)
{
    unsigned meaning;
    if (*site) {
        if (address == *site) return FURTHER;
        if (is_pair(*site, address)) return YES;
        if (!(meaning_of(*site) & OF_WRAPPER)) return NO;
    }
    meaning = meaning_of(address);
    if (meaning & ALONE) return YES;
    *site = meaning & OF_SITE ? address : 0;
    return meaning & (OF_SITE | OF_WRAPPER) ? FURTHER : NO;
}

/* Whether an allocation whose first return address is not plain is selected. */
static int walk(const uintptr_t *slot)
{
    uintptr_t stack[MOST_FRAMES], site = 0;
    struct frame frame = first_frame(slot);
    for (int frames = 0; frames < MOST_FRAMES; frames++) {
        int answer = step(&site, address_at(frame.slot));
        if (answer != FURTHER) return answer;
        enum outwards way = step_outwards(&frame);
        if (way == FOLLOWED) continue;
        if (way == OUTERMOST || !process.has_unwinder || busy) return NO;
        int depth = unwind(slot, stack);
        site = 0;
        for (int number = 0; number < depth && answer == FURTHER; number++) answer = step(&site, stack[number]);
        return answer == YES;
    }
    return NO;
}

static inline __attribute__((always_inline)) int is_plain_call(const uintptr_t *slot)
{
    const uintptr_t address = address_at(slot);
    return known[first_place(address)] == ((uint64_t)address << 16 | PLAIN);
}
