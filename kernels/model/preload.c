/* The library that `pagewise where` preloads into the program: reports each allocation with its call site to the plug-in of the
   emulator (origin_calls.h), or to the sampler (sampler.c). All calls reach the program's allocator unchanged. In a process that
   neither observes, it reports nothing. */
#define _GNU_SOURCE
#include "allocator.h"
#include "call_stack.h"
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct allocator next;
static void *(*next_mmap)(void *, size_t, int, int, int, off_t);
static bool is_resolved;

static volatile int observed; /* by the plug-in or the sampler */
static uintptr_t code_begin, code_end;

_Static_assert((int)MOST_FRAMES == (int)PW_ORIGIN_FRAMES, "the plug-in takes all frames");

static void find_next(void)
{
    if (is_resolved) return;
    pw_report(PW_ORIGIN_PAUSE, 0, NULL, 0, NULL);
    void *function = next_function("mmap");
    memcpy(&next_mmap, &function, sizeof function);
    find_allocator(&next);
    pw_report(PW_ORIGIN_RESUME, 0, NULL, 0, NULL);
    is_resolved = true;
}

__attribute__((constructor)) static void start(void)
{
    extern const char etext[] __attribute__((visibility("hidden"))); /* of the linker: the end of this library's code */
    Dl_info here;
    find_next();
    pw_report(PW_ORIGIN_PAUSE, 0, NULL, 0, NULL);
    const bool known = dladdr((void *)&observed, &here) != 0;
    pw_report(PW_ORIGIN_RESUME, 0, NULL, 0, NULL);
    if (!known) return;
    code_begin = (uintptr_t)here.dli_fbase;
    code_end = (uintptr_t)etext;
    pw_report(PW_ORIGIN_HELLO, 0, (void *)&observed, code_begin, (void *)code_end);
}

static void before_unwinding(void)
{
    pw_busy = true;
    pw_report(PW_ORIGIN_PAUSE, 0, NULL, 0, NULL);
}

static void after_unwinding(void)
{
    pw_report(PW_ORIGIN_RESUME, 0, NULL, 0, NULL);
    pw_busy = false;
}

/* Reports memory, or address space, of the site whose return address is at `slot`. */
static void begin(enum pw_origin_event event, void *memory, size_t bytes, const uintptr_t *slot)
{
    uintptr_t stack[PW_ORIGIN_FRAMES];
    const int frames = stack_of(slot, stack);
    pw_report(event, frames, memory, bytes, stack);
}

static void *begin_block(void *memory, const uintptr_t *slot)
{
    if (memory != NULL && observed && !pw_busy) begin(PW_ORIGIN_BEGIN, memory, next.malloc_usable_size(memory), slot);
    return memory;
}

static void end_block(void *memory)
{
    if (memory != NULL && observed && !pw_busy) pw_report(PW_ORIGIN_END, 0, memory, next.malloc_usable_size(memory), NULL);
}

EXPORTED void *malloc(size_t bytes)
{
    find_next();
    return begin_block(next.malloc(bytes), HERE);
}

EXPORTED void *calloc(size_t count, size_t bytes)
{
    find_next();
    return begin_block(next.calloc(count, bytes), HERE);
}

static void *reallocate(void *memory, size_t bytes, const uintptr_t *slot)
{
    find_next();
    end_block(memory);
    void *moved = next.realloc(memory, bytes);
    begin_block(moved == NULL && bytes > 0 ? memory : moved, slot);
    return moved;
}

EXPORTED void *realloc(void *memory, size_t bytes)
{
    return reallocate(memory, bytes, HERE);
}

EXPORTED void *reallocarray(void *memory, size_t count, size_t bytes)
{
    size_t product;
    if (__builtin_mul_overflow(count, bytes, &product)) {
        errno = ENOMEM;
        return NULL;
    }
    return reallocate(memory, product, HERE);
}

EXPORTED void free(void *memory)
{
    find_next();
    end_block(memory);
    next.free(memory);
}

EXPORTED int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    find_next();
    const int failed = next.posix_memalign(memory, alignment, bytes);
    if (failed == 0) begin_block(*memory, HERE);
    return failed;
}

EXPORTED void *aligned_alloc(size_t alignment, size_t bytes)
{
    find_next();
    return begin_block(next.aligned_alloc(alignment, bytes), HERE);
}

EXPORTED void *memalign(size_t alignment, size_t bytes)
{
    find_next();
    return begin_block(next.memalign(alignment, bytes), HERE);
}

EXPORTED void *mmap(void *address, size_t bytes, int access, int flags, int file, off_t offset)
{
    find_next();
    void *memory = next_mmap(address, bytes, access, flags, file, offset);
    if (memory != MAP_FAILED && observed && !pw_busy && (flags & MAP_ANONYMOUS) != 0)
        begin(access == PROT_NONE ? PW_ORIGIN_RESERVE : PW_ORIGIN_BEGIN, memory, bytes, HERE);
    return memory;
}

EXPORTED void *mmap64(void *address, size_t bytes, int access, int flags, int file, off_t offset) __attribute__((alias("mmap")));
