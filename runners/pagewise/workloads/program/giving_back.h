/* For preloaded libraries that look at the memory of a program before it gives much of it back, and at its end.
 *
 * They define is_looking(), which decides quickly, and look(at_end), which leaves errno as it is. The end is after the
 * program's own handlers and destructors, and after its output.
 */
#include "filter.h"
#include "next.h"
#include "selected.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LARGE = 1 << 20 };

static void (*next_free)(void *);
static size_t (*next_size)(void *); /* of the allocator whose free is the next; NULL if it has none */
static int (*next_munmap)(void *, size_t);

static int is_looking(void);
static void look(int at_end);

static int is_overruled(int option, unsigned long value) { return (void)option, (void)value, 0; }

void free(void *memory)
{
    if (!next_free) {
        const struct link_map *allocator = next_object("free");
        *(void **)&next_size = function_in(allocator, "malloc_usable_size");
        *(void **)&next_free = function_in(allocator, "free");
    }
    if (memory && next_size && is_looking() && next_size(memory) >= LARGE) look(0);
    next_free(memory);
}

int munmap(void *address, size_t length)
{
    if (length >= LARGE && is_looking()) look(0);
    /* That of remap.c, if it is preloaded too. */
    if (!next_munmap) *(void **)&next_munmap = next_function("munmap");
    return next_munmap(address, length);
}

/* Asked by selected.c, which keeps what is freed or gives it back itself. */
void pagewise_before_release(size_t bytes)
{
    if (bytes >= LARGE && is_looking()) look(0);
}

__attribute__((noreturn)) void _exit(int status)
{
    look(1);
    for (;;) syscall(SYS_exit_group, status);
}
__attribute__((noreturn)) void _Exit(int status) { _exit(status); }

/* As exit does afterwards, but without waiting for a thread that uses the stream, and not where the program has put
 * another stream in its place, which it may have closed. */
static void flush(FILE *stream, const FILE *standard)
{
    if (stream != standard || ftrylockfile(stream)) return;
    fflush_unlocked(stream);
    funlockfile(stream);
}

static void end(void *unused)
{
    extern FILE _IO_2_1_stdout_, _IO_2_1_stderr_;
    (void)unused;
    flush(stdout, &_IO_2_1_stdout_);
    flush(stderr, &_IO_2_1_stderr_);
    look(1);
}

static void end_quickly(void *unused)
{
    (void)unused;
    look(1);
}

/* What is registered first is called last, after the destructors of all libraries. NULL: the handler is no library's, or
 * the destructors of this one would call it. */
__attribute__((constructor)) static void register_end(void)
{
    extern int __cxa_atexit(void (*)(void *), void *, void *), __cxa_at_quick_exit(void (*)(void *), void *);
    __cxa_atexit(end, NULL, NULL);
    __cxa_at_quick_exit(end_quickly, NULL);
}
