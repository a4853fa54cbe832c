/* Memory on transparent huge pages for selected allocations, in one range of addresses.
 *
 * Small blocks lie in chunks of one size class each; freed ones are used again in their class. Larger blocks lie next to each
 * other, so that their ends share huge pages, and at distances that are not powers of two. The first free range that suits is
 * taken. Freed memory stays with the process, except whole huge pages around a block of at least KEPT bytes.
 */
#pragma once
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CHUNK_SHIFT = 18, CHUNK = 1 << CHUNK_SHIFT, LARGEST_SMALL = 1 << 15, SMALL_CLASSES = 40, KEPT = 32 << 20 };
enum { LINE_BYTES = 64 /* of a cache: between a block's header and its memory */ };
static const uintptr_t largest_room = (uintptr_t)1 << 42, smallest_room = (uintptr_t)1 << 32;

/* Free memory; that between `zero` and `zero_end` is zeroed. */
struct free_range {
    uintptr_t start, end, zero, zero_end;
};
/* Before the memory of a large block. */
struct block_head {
    uintptr_t start, end;
};
struct small_class {
    pthread_mutex_t lock;
    void *first;                /* freed blocks, each of which has the address of the next one */
    uintptr_t next, end;        /* of the chunk in use */
    uint64_t count;             /* blocks that the program has */
};

static struct {
    uintptr_t start, middle, length; /* large blocks, and from `middle` on chunks */
    uintptr_t huge;
    uintptr_t large_mapped, chunks_mapped, chunks_used;
    unsigned char *class_of_chunk;
    struct free_range *ranges; /* of large blocks, sorted */
    size_t range_count, range_room;
    pthread_mutex_t lock;
    uint64_t large, peak; /* bytes: of large blocks, and the most of all */
    struct small_class small[SMALL_CLASSES];
    void (*before_release)(size_t bytes);
} arena;

static uintptr_t arena_up(uintptr_t value, uintptr_t step) { return (value + step - 1) & -step; }
static int is_in_arena(const void *memory) { return (uintptr_t)memory - arena.start < arena.length; }

/* Steps of 16 bytes up to 128, then four per power of two. */
static unsigned class_of(size_t bytes)
{
    size_t last = bytes ? bytes - 1 : 0;
    if (last < 128) return (unsigned)(last >> 4);
    unsigned shift = 63u - (unsigned)__builtin_clzll(last);
    return 8 + (shift - 7) * 4 + (unsigned)(last >> (shift - 2) & 3);
}
static size_t size_of_class(unsigned number)
{
    return number < 8 ? (number + 1) * 16 : (size_t)(5 + (number & 3)) << (((number - 8) >> 2) + 5);
}

static void *map_pages(uintptr_t at, size_t length, int protection)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0);
    void *got = (void *)syscall(SYS_mmap, at, length, protection, flags, -1, 0);
    return got == MAP_FAILED ? NULL : got;
}

/* Reserves addresses; returns whether there are some. huge: bytes of a huge page. */
static int open_arena(uintptr_t huge, void (*before_release)(size_t bytes))
{
    uintptr_t got = 0, room = largest_room;
    while (room >= smallest_room && !(got = (uintptr_t)map_pages(0, room, PROT_NONE))) room /= 2;
    size_t chunks = room / 2 / CHUNK, ranges = sizeof *arena.ranges << 8;
    if (!got || !(arena.class_of_chunk = map_pages(0, chunks, PROT_READ | PROT_WRITE))) return 0;
    if (!(arena.ranges = map_pages(0, ranges, PROT_READ | PROT_WRITE))) return 0;
    uintptr_t start = arena_up(got, huge > CHUNK ? huge : CHUNK);
    arena.huge = huge;
    arena.before_release = before_release;
    arena.range_room = 1 << 8;
    arena.middle = arena_up(start + (room - (start - got)) / 2, huge);
    arena.large_mapped = start;
    arena.chunks_mapped = arena.chunks_used = arena.middle;
    arena.ranges[arena.range_count++] = (struct free_range){start, arena.middle, start, arena.middle};
    pthread_mutex_init(&arena.lock, NULL);
    for (int number = 0; number < SMALL_CLASSES; number++) pthread_mutex_init(&arena.small[number].lock, NULL);
    arena.start = start;
    arena.length = ((got + room) & -huge) - start;
    return 1;
}

static void hold_arena(void)
{
    for (int number = 0; number < SMALL_CLASSES; number++) pthread_mutex_lock(&arena.small[number].lock);
    pthread_mutex_lock(&arena.lock);
}
static void release_arena(void)
{
    pthread_mutex_unlock(&arena.lock);
    for (int number = 0; number < SMALL_CLASSES; number++) pthread_mutex_unlock(&arena.small[number].lock);
}

/* Makes the addresses up to `end` accessible, on huge pages. */
static int extend(uintptr_t *mapped, uintptr_t end, uintptr_t limit)
{
    if (end <= *mapped) return 1;
    end = arena_up(end, arena.huge);
    if (end > limit || syscall(SYS_mprotect, *mapped, end - *mapped, PROT_READ | PROT_WRITE)) return 0;
    syscall(SYS_madvise, *mapped, end - *mapped, MADV_HUGEPAGE);
    *mapped = end;
    return 1;
}

/* Other threads may change the counts at the same time, which does no harm. */
static void note_peak(void)
{
    uint64_t bytes = arena.large;
    for (unsigned number = 0; number < SMALL_CLASSES; number++)
        bytes += __atomic_load_n(&arena.small[number].count, __ATOMIC_RELAXED) * size_of_class(number);
    if (bytes > arena.peak) arena.peak = bytes;
}

/* NULL without memory. */
static void *take_small(unsigned number)
{
    struct small_class *of = &arena.small[number];
    size_t size = size_of_class(number);
    pthread_mutex_lock(&of->lock);
    void *got = of->first;
    if (got) of->first = *(void **)got;
    else if (of->end - of->next < size) {
        pthread_mutex_lock(&arena.lock);
        uintptr_t chunk = arena.chunks_used;
        if (extend(&arena.chunks_mapped, chunk + CHUNK, arena.start + arena.length)) {
            arena.class_of_chunk[(chunk - arena.middle) >> CHUNK_SHIFT] = (unsigned char)number;
            arena.chunks_used += CHUNK;
            of->next = chunk;
            of->end = chunk + CHUNK;
        }
        note_peak();
        pthread_mutex_unlock(&arena.lock);
    }
    if (!got && of->end - of->next >= size) {
        got = (void *)of->next;
        of->next += size;
    }
    of->count += got != NULL;
    pthread_mutex_unlock(&of->lock);
    return got;
}

static void remove_range(size_t number)
{
    memmove(&arena.ranges[number], &arena.ranges[number + 1], (--arena.range_count - number) * sizeof *arena.ranges);
}

/* Returns whether there is room for one more range. */
static int insert_range(size_t number, struct free_range range)
{
    if (arena.range_count == arena.range_room) {
        size_t length = arena.range_room * sizeof range;
        struct free_range *more = map_pages(0, 2 * length, PROT_READ | PROT_WRITE);
        if (!more) return 0;
        memcpy(more, arena.ranges, length);
        syscall(SYS_munmap, arena.ranges, length);
        arena.ranges = more;
        arena.range_room *= 2;
    }
    memmove(&arena.ranges[number + 1], &arena.ranges[number], (arena.range_count++ - number) * sizeof range);
    arena.ranges[number] = range;
    return 1;
}

/* Takes the first `length` bytes of a free range. */
static struct free_range cut(size_t number, size_t length)
{
    struct free_range taken = arena.ranges[number], *rest = &arena.ranges[number];
    taken.end = rest->start += length;
    if (rest->zero < rest->start) rest->zero = rest->start;
    if (rest->zero_end < rest->zero) rest->zero_end = rest->zero;
    if (taken.zero_end > taken.end) taken.zero_end = taken.end;
    if (taken.zero > taken.zero_end) taken.zero = taken.zero_end;
    if (rest->start == rest->end) remove_range(number);
    return taken;
}

static struct block_head *head_of(const void *memory) { return (struct block_head *)((uintptr_t)memory - LINE_BYTES); }

static size_t arena_size(const void *memory)
{
    if ((uintptr_t)memory >= arena.middle)
        return size_of_class(arena.class_of_chunk[((uintptr_t)memory - arena.middle) >> CHUNK_SHIFT]);
    return head_of(memory)->end - (uintptr_t)memory;
}

static void zero(uintptr_t from, uintptr_t to)
{
    if (to > from) memset((void *)from, 0, to - from);
}

static void *take_large(size_t bytes, size_t alignment, int zeroed)
{
    void *got = NULL;
    struct free_range taken = {0};
    size_t length = arena_up(bytes + LINE_BYTES + (alignment > LINE_BYTES ? alignment : 0), LINE_BYTES);
    if (length < bytes) return NULL;
    pthread_mutex_lock(&arena.lock);
    for (size_t number = 0; number < arena.range_count && !got; number++) {
        const struct free_range *range = &arena.ranges[number];
        if (range->end - range->start < length) continue;
        if (!extend(&arena.large_mapped, range->start + length, arena.middle)) break;
        taken = cut(number, length);
        got = (void *)arena_up(taken.start + LINE_BYTES, alignment);
    }
    if (got) {
        arena.large += taken.end - (uintptr_t)got;
        note_peak();
    }
    pthread_mutex_unlock(&arena.lock);
    if (!got) return NULL;
    uintptr_t start = (uintptr_t)got, end = start + bytes;
    *head_of(got) = (struct block_head){taken.start, taken.end};
    if (zeroed) {
        zero(start, end < taken.zero ? end : taken.zero);
        zero(start > taken.zero_end ? start : taken.zero_end, end);
    }
    return got;
}

/* Gives whole huge pages of a free range back. */
static void release_pages(struct free_range *range)
{
    uintptr_t from = arena_up(range->start, arena.huge), to = range->end & -arena.huge;
    if (to > arena.large_mapped) to = arena.large_mapped;
    if (to <= from) return;
    int before = errno;
    if (!syscall(SYS_madvise, from, to - from, MADV_DONTNEED)) {
        range->zero = from;
        range->zero_end = range->end > arena.large_mapped ? range->end : to;
    }
    errno = before;
}

static void give_large(const void *memory)
{
    const struct block_head head = *head_of(memory);
    struct free_range range = {head.start, head.end, head.end, head.end};
    int is_released = head.end - head.start >= KEPT;
    if (is_released && arena.before_release) arena.before_release(head.end - head.start);
    pthread_mutex_lock(&arena.lock);
    arena.large -= head.end - (uintptr_t)memory;
    size_t low = 0, high = arena.range_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (arena.ranges[middle].start < head.start) low = middle + 1;
        else high = middle;
    }
    if (low < arena.range_count && arena.ranges[low].start == range.end) {
        range.end = arena.ranges[low].end;
        range.zero = arena.ranges[low].zero;
        range.zero_end = arena.ranges[low].zero_end;
        remove_range(low);
    }
    if (low && arena.ranges[low - 1].end == range.start) {
        const struct free_range *before = &arena.ranges[--low];
        if (before->zero_end - before->zero > range.zero_end - range.zero) {
            range.zero = before->zero;
            range.zero_end = before->zero_end;
        }
        range.start = before->start;
        remove_range(low);
    }
    if (is_released) release_pages(&range);
    /* Without room for the entry the addresses are lost. */
    insert_range(low, range);
    pthread_mutex_unlock(&arena.lock);
}

/* Memory of at least this many bytes, a multiple of `alignment`, which is a power of two; NULL without memory. */
static void *take(size_t bytes, size_t alignment, int zeroed)
{
    size_t least = bytes;
    if (alignment > 16) {
        /* Blocks of a class whose size is a power of two are aligned to it. */
        least = alignment;
        while (least < bytes && least <= LARGEST_SMALL) least *= 2;
    }
    if (least > LARGEST_SMALL) return take_large(bytes, alignment < LINE_BYTES ? LINE_BYTES : alignment, zeroed);
    void *got = take_small(class_of(least));
    if (got && zeroed) memset(got, 0, bytes);
    return got;
}

__attribute__((noinline)) static void give(void *memory)
{
    if ((uintptr_t)memory < arena.middle) {
        give_large(memory);
        return;
    }
    struct small_class *of = &arena.small[arena.class_of_chunk[((uintptr_t)memory - arena.middle) >> CHUNK_SHIFT]];
    pthread_mutex_lock(&of->lock);
    *(void **)memory = of->first;
    of->first = memory;
    of->count--;
    pthread_mutex_unlock(&of->lock);
}

/* Whether a block could be made `bytes` long where it is. Small ones keep their class, large ones do not become much smaller. */
static int resize(const void *memory, size_t bytes)
{
    size_t size = arena_size(memory);
    if ((uintptr_t)memory >= arena.middle) return bytes <= LARGEST_SMALL && size_of_class(class_of(bytes)) == size;
    if (bytes <= size) return bytes >= size / 2;
    size_t more = arena_up(bytes - size, LINE_BYTES);
    int fits = 0;
    struct block_head *head = head_of(memory);
    pthread_mutex_lock(&arena.lock);
    for (size_t number = 0; number < arena.range_count && arena.ranges[number].start <= head->end && !fits; number++) {
        const struct free_range *range = &arena.ranges[number];
        if (range->start != head->end || range->end - range->start < more) continue;
        if (!extend(&arena.large_mapped, range->start + more, arena.middle)) break;
        head->end = cut(number, more).end;
        arena.large += more;
        note_peak();
        fits = 1;
    }
    pthread_mutex_unlock(&arena.lock);
    return fits;
}
