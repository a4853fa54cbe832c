/* Preloaded into an unmodified program: puts the memory of selected origins on transparent huge pages, and no other.
 *
 * PAGEWISE_WHERE names the selection (selection.h). Selected allocations come from an arena (arena.h); anonymous mappings are
 * advised by remap.c, which asks this library; static objects are advised, or moved by remap.c. All other calls reach the
 * program's allocator unchanged. The program's advice (MADV_HUGEPAGE) is ignored, unless the policy has the part `advised`.
 */
#define _GNU_SOURCE
#include "allocator.h"
#include "arena.h"
#include "node.h"
#include "resolved.h"
#include "selected.h"

static void give_first(void *memory);

static struct allocator next = {.free = give_first};
static int (*next_madvise)(void *, size_t, int);

static struct {
    int started, is_usable, keeps_advice;
} state;

/* At the first call, which may come before any constructor has run. */
static void start(void)
{
    const char *file = getenv("PAGEWISE_WHERE"), *policy = getenv("PAGEWISE_EXEC_POLICY");
    int before = errno;
    uintptr_t huge = pmd_size();
    void *function = next_function("madvise");
    memcpy(&next_madvise, &function, sizeof function);
    find_allocator(&next);
    state.started = 1;
    state.keeps_advice = policy && listed(policy, "advised", '+');
    state.is_usable = file && open_arena(huge, pagewise_before_release) && open_selection(file, huge);
    errno = before;
}

__attribute__((constructor)) static void begin(void)
{
    if (!state.started) start();
    if (!state.is_usable) return;
    process.has_unwinder = 1;
    pthread_atfork(hold_arena, release_arena, release_arena);
}

__attribute__((noinline)) static int is_selected_slowly(const uintptr_t *slot)
{
    if (!state.started) start();
    return state.is_usable && !(meaning_of(address_at(slot)) & PLAIN) && walk(slot);
}

/* Before the start the table is empty. */
static inline __attribute__((always_inline)) int is_selected(const uintptr_t *slot)
{
    return !is_plain_call(slot) && is_selected_slowly(slot);
}

int pagewise_is_selected(const uintptr_t *slot) { return is_selected(slot); }

void pagewise_each_data(void (*move)(uintptr_t from, uintptr_t to))
{
    if (!state.started) start();
    if (state.is_usable) dl_iterate_phdr(move_data, &move);
}

struct selected_memory pagewise_selected_memory(void)
{
    if (!state.is_usable) return (struct selected_memory){0, 0};
    note_peak();
    return (struct selected_memory){arena.peak + process.static_bytes, process.loaded_modules != 0};
}

/* What most calls do not need, so that they save no registers. */
__attribute__((noinline)) static void *allocate(size_t bytes, const uintptr_t *slot)
{
    void *got = is_selected_slowly(slot) ? take(bytes, 16, 0) : NULL;
    return got ? got : next.malloc(bytes);
}

void *malloc(size_t bytes)
{
    const uintptr_t *slot = HERE;
    return is_plain_call(slot) ? next.malloc(bytes) : allocate(bytes, slot);
}

void *calloc(size_t count, size_t bytes)
{
    size_t product;
    int is_pagewise = is_selected(HERE) && !__builtin_mul_overflow(count, bytes, &product);
    void *got = is_pagewise ? take(product, 16, 1) : NULL;
    return got ? got : next.calloc(count, bytes);
}

size_t malloc_usable_size(void *memory)
{
    if (is_in_arena(memory)) return arena_size(memory);
    if (!state.started) start();
    return next.malloc_usable_size(memory);
}

static void give_first(void *memory)
{
    start();
    next.free(memory);
}

void free(void *memory)
{
    if (!is_in_arena(memory)) next.free(memory);
    else give(memory);
}

/* The memory belongs to the site that changes its size last. */
static void *reallocate(void *memory, size_t bytes, const uintptr_t *slot)
{
    int is_pagewise = is_selected(slot), was_pagewise = is_in_arena(memory);
    if (!is_pagewise && !was_pagewise) return next.realloc(memory, bytes);
    if (memory && !bytes) {
        free(memory);
        return NULL;
    }
    if (is_pagewise && was_pagewise && resize(memory, bytes)) return memory;
    void *got = is_pagewise ? take(bytes, 16, 0) : NULL;
    if (!got && !was_pagewise) return next.realloc(memory, bytes);
    if (!got) got = next.malloc(bytes);
    if (!got || !memory) return got;
    size_t size = malloc_usable_size(memory);
    memcpy(got, memory, bytes < size ? bytes : size);
    free(memory);
    return got;
}

void *realloc(void *memory, size_t bytes) { return reallocate(memory, bytes, HERE); }

void *reallocarray(void *memory, size_t count, size_t bytes)
{
    size_t product;
    if (!__builtin_mul_overflow(count, bytes, &product)) return reallocate(memory, product, HERE);
    errno = ENOMEM;
    return NULL;
}

static void *take_aligned(size_t alignment, size_t bytes, const uintptr_t *slot)
{
    int is_power = alignment && !(alignment & (alignment - 1));
    return is_selected(slot) && is_power ? take(bytes, alignment < 16 ? 16 : alignment, 0) : NULL;
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    void *got = alignment % sizeof(void *) ? NULL : take_aligned(alignment, bytes, HERE);
    if (!state.started) start();
    if (!got) return next.posix_memalign(memory, alignment, bytes);
    *memory = got;
    return 0;
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    void *got = take_aligned(alignment, bytes, HERE);
    return got ? got : next.aligned_alloc(alignment, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
    void *got = take_aligned(alignment, bytes, HERE);
    return got ? got : next.memalign(alignment, bytes);
}

int madvise(void *address, size_t length, int advice)
{
    if (!state.started) start();
    if (advice == MADV_HUGEPAGE && state.is_usable && !state.keeps_advice) return 0;
    return next_madvise(address, length, advice);
}
