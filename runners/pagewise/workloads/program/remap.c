/* Preloaded into an unmodified program: asks for huge pages where the program does not.
 *
 * PAGEWISE_PRELOAD lists what to do:
 *   advise  each private anonymous mapping that the program makes (mmap, sbrk) is advised: MADV_HUGEPAGE
 *   bss     zeroed static data is advised before it is touched
 *   text    machine code is copied onto huge pages, which take its place
 *   refuse  huge pages are refused, in programs that do not inherit this from their launcher (prctl)
 *   refuse-unadvised  the same, except where the program asks for them (MADV_HUGEPAGE; Linux 6.18)
 * PAGEWISE_PRELOAD_SIZE is the page size in bytes (default: that of transparent huge pages). What could not be done is appended to the file that
 * PAGEWISE_PRELOAD_LOG names, one line per failure. glibc's malloc maps memory behind our back: its tunable sees to it.
 *
 * Text is remapped as in Intel's iodlr and Chromium: a copy on anonymous huge pages, moved over the old mapping by
 * one mremap. Whole pages only. The content is the same before and after, and the kernel holds faults back while it
 * moves a mapping, so that even libc may be moved while it executes the call. Where a thread runs already nothing is
 * done. Profilers and debuggers see anonymous memory instead of the file.
 */
#define _GNU_SOURCE
#include "node.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif
#ifndef MAP_HUGETLB
#error "this is for Linux"
#endif

enum {
    LINES_OF_ITSELF = 2, /* `.` and `..` in the links of a folder of /proc */
    UNLESS_ADVISED = 2,  /* PR_THP_DISABLE_EXCEPT_ADVISED of Linux 6.18 */
};

static struct {
    int known, advise, bss, text;
    unsigned long refuse; /* the first argument of PR_SET_THP_DISABLE, and its flags */
    uintptr_t huge, base;
    void *(*sbrk)(intptr_t);
} plan;

static void report(const char *what)
{
    const char *name = getenv("PAGEWISE_PRELOAD_LOG");
    int file = name ? open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    if (file < 0) return;
    char line[256];
    const char *why = strerror(errno);
    size_t length = 0;
    for (const char *from = what; *from && length < 128; from++) line[length++] = *from;
    for (const char *from = why; *from && length < 254; from++) line[length++] = *from;
    line[length++] = '\n';
    if (write(file, line, length) < 0) { /* it cannot be reported */ }
    close(file);
}

static void read_plan(void)
{
    const char *list = getenv("PAGEWISE_PRELOAD"), *size = getenv("PAGEWISE_PRELOAD_SIZE");
    plan.known = 1;
    if (!list) return;
    plan.base = (uintptr_t)sysconf(_SC_PAGESIZE);
    plan.huge = size ? strtoull(size, NULL, 10) : pmd_size();
    plan.refuse = listed(list, "refuse-unadvised", ',') ? 1 | UNLESS_ADVISED : listed(list, "refuse", ',');
    if (plan.huge <= plan.base || plan.huge & (plan.huge - 1)) return;
    plan.advise = listed(list, "advise", ',');
    plan.bss = listed(list, "bss", ',');
    plan.text = listed(list, "text", ',');
}

static uintptr_t up(uintptr_t value, uintptr_t step) { return (value + step - 1) & -step; }
static uintptr_t down(uintptr_t value, uintptr_t step) { return value & -step; }

static void advise(uintptr_t from, uintptr_t to)
{
    int before = errno;
    if (to > from) madvise((void *)from, to - from, MADV_HUGEPAGE);
    errno = before;
}

void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
    void *got = (void *)syscall(SYS_mmap, address, length, protection, flags, file, offset);
    if (!plan.known) read_plan();
    if (plan.advise && got != MAP_FAILED && (flags & MAP_TYPE) == MAP_PRIVATE && flags & MAP_ANONYMOUS
        && !(flags & (MAP_HUGETLB | MAP_GROWSDOWN | MAP_STACK)))
        advise((uintptr_t)got, (uintptr_t)got + up(length, plan.base));
    return got;
}

void *mmap64(void *address, size_t length, int protection, int flags, int file, off64_t offset)
{
    return mmap(address, length, protection, flags, file, offset);
}

void *sbrk(intptr_t increment)
{
    if (!plan.known) read_plan();
    if (!plan.sbrk) *(void **)&plan.sbrk = dlsym(RTLD_NEXT, "sbrk");
    if (!plan.sbrk) {
        errno = ENOMEM;
        return (void *)-1;
    }
    void *old = plan.sbrk(increment);
    if (plan.advise && increment > 0 && old != (void *)-1)
        advise(up((uintptr_t)old, plan.base), up((uintptr_t)old + (uintptr_t)increment, plan.base));
    return old;
}

static void remap_text(uintptr_t from, uintptr_t length)
{
    uintptr_t room = length + plan.huge;
    void *got = (void *)syscall(SYS_mmap, NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) {
        report("text: no memory for the copy: ");
        return;
    }
    uintptr_t start = (uintptr_t)got, copy = up(start, plan.huge);
    if (madvise((void *)copy, length, MADV_HUGEPAGE)) report("text: huge pages were refused: ");
    memcpy((void *)copy, (const void *)from, length);
    /* Where the first touch found no free huge page. Older kernels do not have it; page verification shows the effect. */
    madvise((void *)copy, length, MADV_COLLAPSE);
    uintptr_t rest = start, rest_end = start + room;
    if (mprotect((void *)copy, length, PROT_READ | PROT_EXEC)) {
        report("text: a copy may not be executed: ");
    } else if (mremap((void *)copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)from) == MAP_FAILED) {
        report("text: the copy could not take the place: ");
    } else {
        __builtin___clear_cache((char *)from, (char *)from + length);
        munmap((void *)rest, copy - rest);
        rest = copy + length;
    }
    if (rest_end > rest) munmap((void *)rest, rest_end - rest);
}

static int each_object(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size, (void)unused;
    for (int number = 0; number < object->dlpi_phnum; number++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[number];
        if (segment->p_type != PT_LOAD) continue;
        uintptr_t start = object->dlpi_addr + segment->p_vaddr;
        if (plan.bss && segment->p_flags & PF_W && segment->p_memsz > segment->p_filesz) {
            uintptr_t from = up(start + segment->p_filesz, plan.base), to = up(start + segment->p_memsz, plan.base);
            if (down(to, plan.huge) > up(from, plan.huge)) advise(from, to);
        }
        if (plan.text && (segment->p_flags & (PF_R | PF_W | PF_X)) == (PF_R | PF_X)) {
            uintptr_t from = up(start, plan.huge), to = down(start + segment->p_filesz, plan.huge);
            if (to > from) remap_text(from, to - from);
        }
    }
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    if (!plan.known) read_plan();
    if (plan.refuse && prctl(PR_SET_THP_DISABLE, plan.refuse & 1, plan.refuse & UNLESS_ADVISED, 0, 0)) report("refuse: ");
    if (!plan.bss && !plan.text) return;
    struct stat tasks;
    if (plan.text && (stat("/proc/self/task", &tasks) || tasks.st_nlink != LINES_OF_ITSELF + 1)) {
        errno = EBUSY;
        report("text: other threads run already: ");
        plan.text = 0;
    }
    int before = errno;
    dl_iterate_phdr(each_object, NULL);
    errno = before;
}
