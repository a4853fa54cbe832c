/* Preloaded into an unmodified program: asks for huge pages where the program does not.
 *
 * PAGEWISE_PRELOAD lists what to do:
 *   advise         each private anonymous mapping that the program makes (mmap, sbrk) is advised: MADV_HUGEPAGE
 *   advise-malloc  the same for an allocator that replaces the C library's, and for nothing else
 *   shared         shared memory is advised
 *   bss            zeroed static data is advised before it is touched
 *   text           machine code is copied onto huge pages, which take its place
 *   pool-malloc    an allocator that replaces the C library's gets pages of the hugetlb pool
 *   pool-shared    shared memory is of the pool: System V (SHM_HUGETLB), anonymous (MAP_HUGETLB)
 *   pool-data      static data is copied onto pages of the pool, which take its place
 *   refuse         huge pages are refused, in programs that do not inherit this from their launcher (prctl)
 *   refuse-unadvised  the same, except where the program asks for them (MADV_HUGEPAGE; Linux 6.18)
 * PAGEWISE_PRELOAD_SIZE is the page size of transparent huge pages in bytes (default: the system's), PAGEWISE_PRELOAD_POOL that
 * of the pool (default: the default pool's). What could not be done is appended to the file that PAGEWISE_PRELOAD_LOG names, one
 * line per failure.
 *
 * Text and data are remapped as in Intel's iodlr and Chromium: a copy on anonymous huge pages, moved over the old mapping by
 * one mremap. Whole pages only. The content is the same before and after, and the kernel holds faults back while it
 * moves a mapping, so that even libc may be moved while it executes the call. Where a thread runs already nothing is
 * done. Profilers and debuggers see anonymous memory instead of the file.
 */
#define _GNU_SOURCE
#include "asking.h"
#include "quiet.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/stat.h>

enum {
    LINES_OF_ITSELF = 2, /* `.` and `..` in the links of a folder of /proc */
    UNLESS_ADVISED = 2,  /* PR_THP_DISABLE_EXCEPT_ADVISED of Linux 6.18 */
};

static void report(const char *message)
{
    const char *name = getenv("PAGEWISE_PRELOAD_LOG");
    int file = name ? open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644) : -1;
    if (file < 0) return;
    char line[256];
    const char *why = strerror(errno);
    size_t length = 0;
    for (const char *from = message; *from && length < 128; from++) line[length++] = *from;
    for (const char *from = why; *from && length < 254; from++) line[length++] = *from;
    line[length++] = '\n';
    write_quietly(file, line, length);
    close(file);
}

/* Where malloc is. In a program that is not relocatable the address may be that of an entry of its linkage table. */
static uintptr_t place_of_malloc(void)
{
    void *place = (void *)&malloc, *next = NULL;
    const ElfW(Sym) *symbol = NULL;
    Dl_info info;
    if (dladdr1(place, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol && symbol->st_shndx == SHN_UNDEF)
        next = next_function("malloc");
    return (uintptr_t)(next ? next : place);
}

/* The object that malloc is in, unless it is the C library, which maps memory without the calls of asking.h; libraries that are
 * allocators by their name, because a proxy may have malloc (TBB's); and Python, which maps arenas for its small objects. */
static int find_malloc(struct dl_phdr_info *object, size_t size, void *place_of)
{
    uintptr_t place = *(uintptr_t *)place_of, first = UINTPTR_MAX, last = 0;
    const char *slash = strrchr(object->dlpi_name, '/'), *name = slash ? slash + 1 : object->dlpi_name;
    (void)size;
    if (!*name) name = program_invocation_short_name;
    for (int number = 0; number < object->dlpi_phnum; number++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[number];
        uintptr_t start = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD) continue;
        if (start < first) first = start;
        if (start + segment->p_memsz > last) last = start + segment->p_memsz;
    }
    int is_libc = !strncmp(name, "libc.so", 7) || !strncmp(name, "ld-linux", 8), has_malloc = place >= first && place < last;
    if (!is_libc && (has_malloc || strstr(name, "malloc") || strstr(name, "python")) && plan.allocator_count < MOST_ALLOCATORS)
        plan.allocators[plan.allocator_count++] = (struct range){first, last};
    return 0;
}

static void read_plan(void)
{
    const char *list = getenv("PAGEWISE_PRELOAD"), *size = getenv("PAGEWISE_PRELOAD_SIZE");
    const char *pool = getenv("PAGEWISE_PRELOAD_POOL");
    plan.known = 1;
    if (!list) return;
    plan.base = (uintptr_t)sysconf(_SC_PAGESIZE);
    plan.huge = size ? strtoull(size, NULL, 10) : pmd_size();
    plan.pmd = pmd_size();
    plan.pool = pool ? strtoull(pool, NULL, 10) : pool_size();
    plan.refuse = listed(list, "refuse-unadvised", ',') ? 1 | UNLESS_ADVISED : listed(list, "refuse", ',');
    if (plan.huge <= plan.base || plan.huge & (plan.huge - 1) || plan.pool <= plan.base || plan.pool & (plan.pool - 1)) return;
    plan.advise = listed(list, "advise", ',');
    plan.bss = listed(list, "bss", ',');
    plan.text = listed(list, "text", ',');
    plan.shared = listed(list, "shared", ',');
    plan.advise_malloc = listed(list, "advise-malloc", ',');
    plan.pool_malloc = listed(list, "pool-malloc", ',');
    plan.pool_shared = listed(list, "pool-shared", ',');
    plan.pool_data = listed(list, "pool-data", ',');
    uintptr_t place = plan.advise_malloc || plan.pool_malloc ? place_of_malloc() : 0;
    if (place) dl_iterate_phdr(find_malloc, &place);
}

/* Moves `length` bytes at `from` onto huge pages: of the pool, or transparent ones. */
static void remap(uintptr_t from, uintptr_t length, int protection, int is_pool)
{
    uintptr_t step = is_pool ? plan.pool : plan.huge, room = length + (is_pool ? 0 : step);
    uintptr_t start = (uintptr_t)map(0, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (is_pool ? flags_of_pool() : 0));
    if (start == (uintptr_t)MAP_FAILED) {
        report("remap: no memory for the copy: ");
        return;
    }
    uintptr_t copy = up(start, step), rest = start, rest_end = start + room;
    /* Not the madvise of another library, which may ignore advice. */
    if (!is_pool && syscall(SYS_madvise, copy, length, MADV_HUGEPAGE)) report("remap: huge pages were refused: ");
    memcpy((void *)copy, (const void *)from, length);
    /* Where the first touch found no free huge page. Older kernels do not have it; page verification shows the effect. */
    if (!is_pool) madvise((void *)copy, length, MADV_COLLAPSE);
    if (mprotect((void *)copy, length, protection)) {
        report("remap: the copy may not have the rights of the original: ");
    } else if (mremap((void *)copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)from) == MAP_FAILED) {
        report("remap: the copy could not take the place: ");
    } else {
        if (protection & PROT_EXEC) __builtin___clear_cache((char *)from, (char *)from + length);
        if (copy > rest) munmap((void *)rest, copy - rest);
        rest = copy + length;
    }
    if (rest_end > rest) munmap((void *)rest, rest_end - rest);
}

static void remap_whole_pages(uintptr_t from, uintptr_t to, int protection, int is_pool)
{
    uintptr_t step = is_pool ? plan.pool : plan.huge;
    if (down(to, step) > up(from, step)) remap(up(from, step), down(to, step) - up(from, step), protection, is_pool);
}

static int each_object(struct dl_phdr_info *object, size_t size, void *unused)
{
    uintptr_t relocated = 0; /* the end of what the loader has made read-only */
    (void)size, (void)unused;
    for (int number = 0; number < object->dlpi_phnum; number++)
        if (object->dlpi_phdr[number].p_type == PT_GNU_RELRO)
            relocated = object->dlpi_addr + object->dlpi_phdr[number].p_vaddr + object->dlpi_phdr[number].p_memsz;
    for (int number = 0; number < object->dlpi_phnum; number++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[number];
        if (segment->p_type != PT_LOAD) continue;
        uintptr_t start = object->dlpi_addr + segment->p_vaddr, end = start + segment->p_memsz;
        uintptr_t writable = relocated > start && relocated < end ? relocated : start;
        if (plan.bss && segment->p_flags & PF_W && segment->p_memsz > segment->p_filesz) {
            uintptr_t from = up(start + segment->p_filesz, plan.base), to = up(end, plan.base);
            if (down(to, plan.huge) > up(from, plan.huge)) advise(from, to);
        }
        if (plan.text && (segment->p_flags & (PF_R | PF_W | PF_X)) == (PF_R | PF_X))
            remap_whole_pages(start, start + segment->p_filesz, PROT_READ | PROT_EXEC, 0);
        if (plan.pool_data && (segment->p_flags & (PF_R | PF_W | PF_X)) == (PF_R | PF_W))
            remap_whole_pages(writable, end, PROT_READ | PROT_WRITE, 1);
    }
    return 0;
}

/* Selected static objects with content. */
static void move_data(uintptr_t from, uintptr_t to) { remap_whole_pages(from, to, PROT_READ | PROT_WRITE, 0); }

__attribute__((constructor)) static void begin(void)
{
    if (!plan.known) read_plan();
    /* Not the prctl of this library, which refuses nothing where memory is advised. */
    if (plan.refuse && syscall(SYS_prctl, PR_SET_THP_DISABLE, plan.refuse & 1, plan.refuse & UNLESS_ADVISED, 0, 0))
        report("refuse: ");
    pthread_atfork(hold, release, release);
    int is_moved = plan.text || plan.pool_data || pagewise_each_data;
    if (!plan.bss && !is_moved) return;
    struct stat tasks;
    if (is_moved && (stat("/proc/self/task", &tasks) || tasks.st_nlink != LINES_OF_ITSELF + 1)) {
        errno = EBUSY;
        report("remap: other threads run already: ");
        plan.text = plan.pool_data = is_moved = 0;
    }
    int before = errno;
    if (plan.bss || plan.text || plan.pool_data) dl_iterate_phdr(each_object, NULL);
    if (is_moved && pagewise_each_data) pagewise_each_data(move_data);
    errno = before;
}
