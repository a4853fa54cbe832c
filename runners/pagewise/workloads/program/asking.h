/* The calls by which a program and its allocator ask the kernel for memory, instead of libc's: the memory is advised
 * (MADV_HUGEPAGE) or taken from the hugetlb pool. Small pieces lie where a whole huge page around them is mapped, because
 * the first touch decides: pymalloc's 1 MiB, tcmalloc's steps of the heap. What a program cuts off from a piece to align it
 * returns to the room for pieces (Ruby's heap). Where the program chooses the addresses (GHC), small pieces are touched before
 * the next one is mapped next to them: base pages, which the kernel collapses once a whole huge page is mapped. glibc's own
 * malloc maps memory without these calls: its tunable does this.
 */
#pragma once
#include "filter.h"
#include "next.h"
#include "node.h"
#include "selected.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif
#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif

/* Memory of the pool lies in a separate range: its pages cannot be given back in part. */
enum { SMALLEST_PIECE = 1 << 15, WINDOW = 16 << 20, LARGEST_WINDOW = 32 << 20, MOST_ALLOCATORS = 4, MOST_RESERVED = 16 };
static const uintptr_t room_of_pool = (uintptr_t)1 << 42;

static struct {
    int known, advise, bss, text, shared, advise_malloc, pool_malloc, pool_data, pool_shared;
    unsigned long refuse; /* the first argument of PR_SET_THP_DISABLE, and its flags */
    uintptr_t huge, pmd, pool, base;
    struct range {
        uintptr_t start, end;
    } allocators[MOST_ALLOCATORS]; /* the objects that the calls of an allocator come from */
    int allocator_count;
    uintptr_t break_used, break_end;          /* of the heap: what was handed out, and what the kernel gave */
    struct range window, pool_window;         /* of small pieces */
    struct range whole;                       /* `window` with the pieces that were handed out */
    struct range last;                        /* the piece of `window` that was handed out last */
    int is_downward;                          /* `window` is used from its end: this program cuts off the start of pieces */
    struct range reserved[MOST_RESERVED];     /* addresses without access, of which the program makes parts accessible */
    uintptr_t accessible[MOST_RESERVED];      /* the end of the last such part */
    int reserved_count;
    struct room {
        struct range whole;
        uintptr_t next;
    } private_room, shared_room;              /* of memory of the pool */
    int is_held, is_short, is_filtered;
} plan;

static void read_plan(void);
static void report(const char *message);

/* Memory that comes afterwards is neither advised nor of the pool. */
static void before_filter(void)
{
    plan.is_filtered = 1;
    plan.shared = plan.pool_malloc = plan.pool_shared = plan.reserved_count = 0;
}

/* Ruby refuses huge pages for itself: the user's policy takes precedence. */
static int is_overruled(int option, unsigned long value)
{
    if (!plan.known) read_plan();
    return option == PR_SET_THP_DISABLE && (plan.advise || pagewise_is_selected) && value;
}

static uintptr_t up(uintptr_t value, uintptr_t step) { return (value + step - 1) & -step; }
static uintptr_t down(uintptr_t value, uintptr_t step) { return value & -step; }

static void hold(void) { while (__atomic_exchange_n(&plan.is_held, 1, __ATOMIC_ACQUIRE)) {} }
static void release(void) { __atomic_store_n(&plan.is_held, 0, __ATOMIC_RELEASE); }

static void *map(uintptr_t at, size_t length, int protection, int flags)
{
    return (void *)syscall(SYS_mmap, at, length, protection, flags, -1, 0);
}

static void advise(uintptr_t from, uintptr_t to)
{
    int before = errno;
    if (to > from && !plan.is_filtered) syscall(SYS_madvise, from, to - from, MADV_HUGEPAGE);
    errno = before;
}

/* Small neighbours were touched before they made a whole huge page: the kernel moves them onto one. It refuses where the
 * mapping does not span the huge page, and where nothing was touched, which is not an error. */
static void collapse(uintptr_t from, uintptr_t to)
{
    int before = errno;
    uintptr_t first = down(from, plan.huge), last = up(to, plan.huge);
    for (uintptr_t at = first; plan.huge == plan.pmd && at < last; at += plan.huge)
        if (at < from || at + plan.huge > to) syscall(SYS_madvise, at, plan.huge, MADV_COLLAPSE);
    errno = before;
}

static int flags_of_pool(void) { return MAP_HUGETLB | __builtin_ctzll(plan.pool) << MAP_HUGE_SHIFT; }
static int is_in(const struct range *range, const void *address)
{
    return (uintptr_t)address >= range->start && (uintptr_t)address < range->end;
}

/* Whether this code belongs to the allocator that replaces the C library's. */
static int is_malloc(const void *caller)
{
    int number = 0;
    while (number < plan.allocator_count && !is_in(&plan.allocators[number], caller)) number++;
    return number < plan.allocator_count;
}

/* Advised memory at an aligned address; NULL if the kernel has none. */
static void *aligned(size_t length, int flags)
{
    uintptr_t start = (uintptr_t)map(0, length, PROT_READ | PROT_WRITE, flags);
    if (start == (uintptr_t)MAP_FAILED) return NULL;
    if (start & (plan.huge - 1)) {
        syscall(SYS_munmap, start, length);
        start = (uintptr_t)map(0, length + plan.huge, PROT_READ | PROT_WRITE, flags);
        if (start == (uintptr_t)MAP_FAILED) return NULL;
        uintptr_t first = up(start, plan.huge), last = first + length, end = start + length + plan.huge;
        if (first > start) syscall(SYS_munmap, start, first - start);
        if (end > last) syscall(SYS_munmap, last, end - last);
        start = first;
    }
    advise(start, start + length);
    return (void *)start;
}

/* A small piece of a window of huge pages, which `fresh_window` maps; NULL if it does not suit. */
static void *piece(struct range *window, size_t length, uintptr_t page, void *(*fresh_window)(size_t, int), int flags)
{
    if (length < SMALLEST_PIECE || page > LARGEST_WINDOW) return NULL;
    hold();
    if (window->end - window->start < length) {
        uintptr_t room = page > WINDOW ? page : WINDOW, fresh = 0;
        while (!(fresh = (uintptr_t)fresh_window(room, flags)) && room > page) room /= 2;
        if (fresh) *window = (struct range){fresh, fresh + room};
        if (fresh && window == &plan.window) plan.whole = *window;
    }
    int fits = window->end - window->start >= length, is_downward = window == &plan.window && plan.is_downward;
    uintptr_t got = is_downward ? window->end - length : window->start;
    if (fits && is_downward) window->end = got;
    else if (fits) window->start += length;
    if (fits && window == &plan.window) plan.last = (struct range){got, got + length};
    release();
    return fits ? (void *)got : NULL;
}

/* Whether the start or the end of the last piece was cut off and returned to the room for pieces, zeroed. */
static int return_part(uintptr_t start, uintptr_t end)
{
    hold();
    int is_part = end - start < plan.last.end - plan.last.start && end > start;
    int is_start = is_part && start == plan.last.start, is_end = is_part && end == plan.last.end, returned = 0;
    if (is_end && end == plan.window.start) {
        plan.window.start = plan.last.end = start;
        returned = 1;
    } else if (is_start && start == plan.window.end) {
        plan.window.end = plan.last.start = end;
        returned = 1;
    } else if (is_start) plan.is_downward = 1;
    if (returned) memset((void *)start, 0, end - start);
    release();
    return returned;
}

/* The last piece has changed otherwise: no part of it returns. */
static void forget(uintptr_t start, uintptr_t end)
{
    if (start >= plan.last.end || end <= plan.last.start) return;
    hold();
    plan.last = (struct range){0, 0};
    release();
}

/* Notes addresses that the program reserves without access. */
static void note_reserved(uintptr_t start, uintptr_t end)
{
    hold();
    if (plan.reserved_count < MOST_RESERVED) {
        plan.accessible[plan.reserved_count] = start;
        plan.reserved[plan.reserved_count++] = (struct range){start, end};
    }
    release();
}

/* Whether this range of a reservation is made accessible for the first time. A program may change the rights of the same
 * range often (compilers at run time): this costs nothing. */
static int is_new_part(uintptr_t start, uintptr_t end)
{
    int is_new = 0;
    hold();
    for (int number = 0; number < plan.reserved_count; number++) {
        if (start < plan.reserved[number].start || end > plan.reserved[number].end || end <= plan.accessible[number]) continue;
        plan.accessible[number] = end;
        is_new = 1;
    }
    release();
    return is_new;
}

/* Advised memory for a plain request; NULL if it does not suit. */
static void *advised(size_t length, int flags)
{
    length = up(length, plan.base);
    return length >= plan.huge ? aligned(length, flags) : piece(&plan.window, length, plan.huge, aligned, flags);
}

/* Addresses in a range for the pool; 0 if it is full. */
static uintptr_t place_in_pool(struct room *room, size_t length)
{
    uintptr_t none = 0, first = 1;
    if (!__atomic_load_n(&room->next, __ATOMIC_ACQUIRE)) {
        void *got = map(0, room_of_pool, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
        if (got != MAP_FAILED) first = up((uintptr_t)got, plan.pool);
        if (!__atomic_compare_exchange_n(&room->next, &none, first, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            if (got != MAP_FAILED) syscall(SYS_munmap, got, room_of_pool);
        } else if (got != MAP_FAILED) room->whole = (struct range){first, (uintptr_t)got + room_of_pool};
    }
    uintptr_t at = __atomic_fetch_add(&room->next, length, __ATOMIC_RELAXED);
    return at >= room->whole.start && at + length <= room->whole.end ? at : 0;
}

/* Whole pages of the pool, and base pages for the rest; NULL if the pool has too few. `sharing`: MAP_PRIVATE or MAP_SHARED. */
static void *whole_pages(size_t length, int sharing)
{
    uintptr_t whole = down(length, plan.pool), rest = up(length, plan.base) - whole;
    int before = errno, flags = sharing | MAP_ANONYMOUS | MAP_FIXED;
    uintptr_t at = place_in_pool(sharing == MAP_SHARED ? &plan.shared_room : &plan.private_room, up(length, plan.pool));
    if (!at || map(at, whole, PROT_READ | PROT_WRITE, flags | flags_of_pool()) == MAP_FAILED) {
        errno = before;
        return NULL;
    }
    if (rest && map(at + whole, rest, PROT_READ | PROT_WRITE, flags) == MAP_FAILED) {
        syscall(SYS_munmap, at, whole);
        return NULL;
    }
    return (void *)at;
}

static void *from_pool(size_t length, int sharing)
{
    void *got = NULL;
    if (length >= plan.pool) got = whole_pages(length, sharing);
    else if (sharing == MAP_PRIVATE) got = piece(&plan.pool_window, up(length, plan.base), plan.pool, whole_pages, sharing);
    if (!got && length >= SMALLEST_PIECE && !__atomic_exchange_n(&plan.is_short, 1, __ATOMIC_RELAXED))
        report("the hugetlb pool has too few pages: ");
    return got;
}

void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
    if (!plan.known) read_plan();
    int kind = flags & MAP_TYPE, is_anonymous = flags & MAP_ANONYMOUS && !(flags & MAP_HUGETLB);
    int is_malloc_s = (plan.advise_malloc || plan.pool_malloc) && is_malloc(__builtin_return_address(0));
    uintptr_t wish = (uintptr_t)address;
    /* The kernel could not give an address in the room for pieces either: LuaJIT wants each piece behind the one before. */
    int is_free = !wish || (wish >= plan.whole.start && wish <= plan.whole.end && length < plan.huge);
    int is_plain = is_free && protection == (PROT_READ | PROT_WRITE) && is_anonymous
                   && !(flags & (MAP_FIXED | MAP_GROWSDOWN | MAP_STACK | MAP_LOCKED));
    void *got = NULL;
    if (is_plain && kind == MAP_PRIVATE && plan.pool_malloc && is_malloc_s) got = from_pool(length, kind);
    if (is_plain && kind == MAP_SHARED && plan.pool_shared) got = from_pool(length, kind);
    int is_selected = is_anonymous && kind == MAP_PRIVATE && pagewise_is_selected && pagewise_is_selected(HERE);
    int is_advised = !plan.is_filtered && (plan.advise || (plan.advise_malloc && is_malloc_s) || is_selected);
    if (is_plain && !got && is_advised && (flags & ~MAP_NORESERVE) == (MAP_PRIVATE | MAP_ANONYMOUS)) got = advised(length, flags);
    if (got) return got;
    if (flags & MAP_FIXED) forget((uintptr_t)address, (uintptr_t)address + length);
    got = (void *)syscall(SYS_mmap, address, length, protection, flags, file, offset);
    if (got == MAP_FAILED) return got;
    uintptr_t start = (uintptr_t)got, end = start + up(length, plan.base);
    if (is_advised && kind == MAP_PRIVATE && is_anonymous && !(flags & (MAP_GROWSDOWN | MAP_STACK))) {
        advise(start, end);
        if (protection == PROT_NONE && length >= plan.huge) note_reserved(start, end);
        if (address && protection == (PROT_READ | PROT_WRITE)) collapse(start, end);
    }
    if (plan.shared && kind != MAP_PRIVATE && !(flags & MAP_HUGETLB)) advise(start, end);
    return got;
}

void *mmap64(void *address, size_t length, int protection, int flags, int file, off64_t offset)
    __attribute__((alias("mmap")));

int mprotect(void *address, size_t length, int protection)
{
    uintptr_t start = (uintptr_t)address, end = start + up(length, plan.base ? plan.base : 1);
    forget(start, end);
    int failed = (int)syscall(SYS_mprotect, address, length, protection);
    if (!failed && protection == (PROT_READ | PROT_WRITE) && plan.reserved_count && is_new_part(start, end)) {
        advise(start, end);
        collapse(start, end);
    }
    return failed;
}

int munmap(void *address, size_t length)
{
    if (plan.last.end && return_part((uintptr_t)address, (uintptr_t)address + up(length, plan.base))) return 0;
    forget((uintptr_t)address, (uintptr_t)address + length);
    int before = errno, failed = (int)syscall(SYS_munmap, address, length);
    if (!failed || errno != EINVAL || !(is_in(&plan.private_room.whole, address) || is_in(&plan.shared_room.whole, address))) return failed;
    uintptr_t from = up((uintptr_t)address, plan.pool), to = down((uintptr_t)address + length, plan.pool);
    if (to > from) syscall(SYS_munmap, from, to - from);
    errno = before;
    return 0;
}

/* A part of a page of the pool cannot be dropped: it is zeroed, as the program expects it of private memory. Shared memory
 * keeps its content. */
int madvise(void *address, size_t length, int advice)
{
    uintptr_t start = (uintptr_t)address, end = start + length, from = up(start, plan.pool), to = down(end, plan.pool);
    if (advice == MADV_DONTNEED && is_in(&plan.shared_room.whole, address)) return 0;
    if (advice != MADV_DONTNEED || !is_in(&plan.private_room.whole, address)) return (int)syscall(SYS_madvise, address, length, advice);
    if (to <= from) return memset(address, 0, length), 0;
    memset(address, 0, from - start);
    memset((void *)to, 0, end - to);
    return (int)syscall(SYS_madvise, from, to - from, advice);
}

/* Growing memory that has to move keeps its huge pages at an aligned address (LuaJIT). Memory of the pool does not grow; shared
 * memory cannot be copied, because other processes have it too. */
void *mremap(void *address, size_t length, size_t wanted, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    void *at = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
    va_end(more);
    forget((uintptr_t)address, (uintptr_t)address + length);
    int is_pool = is_in(&plan.private_room.whole, address), grows = wanted > length && wanted >= plan.huge && flags == MREMAP_MAYMOVE;
    if (!is_pool && grows && (plan.advise || pagewise_is_selected)) {
        void *grown = (void *)syscall(SYS_mremap, address, length, wanted, 0);
        if (grown == MAP_FAILED && (at = aligned(wanted, MAP_PRIVATE | MAP_ANONYMOUS)))
            grown = (void *)syscall(SYS_mremap, address, length, wanted, flags | MREMAP_FIXED, at);
        if (grown != MAP_FAILED) return grown;
    }
    if (!is_pool || flags & MREMAP_FIXED || !(flags & MREMAP_MAYMOVE))
        return (void *)syscall(SYS_mremap, address, length, wanted, flags, at);
    void *got = from_pool(wanted, MAP_PRIVATE);
    if (!got) got = map(0, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    if (got == MAP_FAILED) return got;
    memcpy(got, address, length < wanted ? length : wanted);
    munmap(address, length);
    return got;
}

extern void *__sbrk(intptr_t); /* glibc's sbrk by its other name */
/* The heap grows by whole huge pages, and hands out what was asked for. It cannot be of the pool: allocators then ask by mmap. */
void *sbrk(intptr_t increment)
{
    if (!plan.known) read_plan();
    int is_malloc_s = is_malloc(__builtin_return_address(0));
    if (plan.pool_malloc && is_malloc_s && increment > 0) {
        errno = ENOMEM;
        return (void *)-1;
    }
    if (!plan.advise && !(plan.advise_malloc && is_malloc_s)) return __sbrk(increment);
    hold();
    uintptr_t end = (uintptr_t)__sbrk(0), old = plan.break_end == end ? plan.break_used : end;
    uintptr_t wanted = old + (uintptr_t)increment, rounded = increment > 0 ? up(wanted, plan.huge) : wanted;
    void *got = (void *)old;
    if (increment && (increment < 0 || wanted > end)) {
        void *grown = __sbrk((intptr_t)(rounded - end));
        if (grown == (void *)-1 && increment > 0) grown = __sbrk((intptr_t)((rounded = wanted) - end));
        if (grown == (void *)-1) got = grown;
        else if (rounded > end) advise(up(end, plan.base), rounded);
    } else rounded = end;
    if (got != (void *)-1) plan.break_used = wanted, plan.break_end = rounded;
    release();
    return got;
}

void *shmat(int number, const void *address, int flags)
{
    void *got = (void *)syscall(SYS_shmat, number, address, flags);
    struct shmid_ds segment;
    if (!plan.known) read_plan();
    int before = errno;
    if (plan.shared && got != (void *)-1 && !shmctl(number, IPC_STAT, &segment))
        advise((uintptr_t)got, (uintptr_t)got + up(segment.shm_segsz, plan.base));
    errno = before;
    return got;
}

int shmget(key_t key, size_t size, int flags)
{
    if (!plan.known) read_plan();
    if (plan.pool_shared && size >= plan.pool) {
        int got = (int)syscall(SYS_shmget, key, up(size, plan.pool), flags | SHM_HUGETLB | __builtin_ctzll(plan.pool) << MAP_HUGE_SHIFT);
        if (got >= 0 || errno == EEXIST || errno == ENOENT) return got;
        report("shmget with SHM_HUGETLB: ");
    }
    return (int)syscall(SYS_shmget, key, size, flags);
}
