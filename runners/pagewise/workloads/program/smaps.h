/* The memory of this process by kind, as /proc/self/smaps has it. */
#pragma once
#include "node.h"

#include <limits.h>
#include <link.h>

enum { HEAP, ANONYMOUS, BSS, DATA, STACK, TEXT, FILES, SHARED, KINDS, NO_KIND = KINDS, MOST_BSS = 128 };
static const char *const kinds[KINDS] = {"heap", "anonymous", "bss", "data", "stack", "text", "file", "shared"};

struct usage {
    uint64_t resident, huge, pool, eligible; /* pool: of `huge`, those of the hugetlb pool */
};
struct memory {
    uint64_t total, huge, unasked; /* unasked: transparent huge pages in mappings that were not advised */
    struct usage by_kind[KINDS], advised;
};
struct mapping {
    uintptr_t start, end;
    char rights[5], name[PATH_MAX];
    uint64_t resident, huge, transparent; /* huge: transparent ones, and those of the pool */
    int is_advised;
};

static struct {
    uint64_t page, base; /* the size of the huge pages asked for, and of base pages */
    int bss_count;
    struct {
        uintptr_t data, start, end; /* of .data, and of .bss behind it */
    } bss[MOST_BSS];
} sizes;

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
    int is_remapped = begins(name, "/anon_hugepage"), is_anonymous = !*name || begins(name, "[anon") || is_remapped;
    if (strchr(one->rights, 'x') && !(strchr(one->rights, 'w') && is_anonymous)) return TEXT;
    for (int number = 0; (!*name || is_remapped) && number < sizes.bss_count; number++) {
        uintptr_t first = is_remapped ? sizes.bss[number].data : sizes.bss[number].start;
        if (one->start + sizes.base > first && one->start < sizes.bss[number].end) return BSS;
    }
    if (is_anonymous) return ANONYMOUS;
    return strchr(one->rights, 'w') ? DATA : FILES;
}

static void add(struct memory *memory, const struct mapping *one)
{
    int kind = one->end ? kind_of(one) : NO_KIND;
    if (kind == NO_KIND) return;
    uint64_t from = (one->start + sizes.page - 1) & -sizes.page, to = one->end & -sizes.page;
    uint64_t room = to > from ? to - from : 0, outside = one->end - one->start - room;
    uint64_t eligible = one->resident > outside ? one->resident - outside : 0;
    if (eligible > room) eligible = room;
    struct usage *const sums[] = {&memory->by_kind[kind], &memory->advised};
    for (int number = 0; number < 1 + one->is_advised; number++) {
        sums[number]->resident += one->resident;
        sums[number]->huge += one->huge;
        sums[number]->pool += one->huge - one->transparent;
        sums[number]->eligible += eligible > one->huge ? eligible : one->huge;
    }
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

static int note_bss(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size, (void)unused;
    for (int number = 0; number < object->dlpi_phnum; number++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[number];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W) || sizes.bss_count == MOST_BSS) continue;
        uintptr_t start = object->dlpi_addr + segment->p_vaddr;
        sizes.bss[sizes.bss_count].data = start;
        sizes.bss[sizes.bss_count].start = start + segment->p_filesz;
        sizes.bss[sizes.bss_count++].end = start + segment->p_memsz;
    }
    return 0;
}
