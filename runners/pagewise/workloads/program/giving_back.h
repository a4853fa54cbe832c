/* For preloaded libraries that look at the memory of a program before it gives much of it back, and at its end.
 *
 * They define is_looking(), which decides quickly, and look(at_end), which leaves errno as it is.
 */
#include "next.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LARGE = 1 << 20 };

static void (*next_free)(void *);
static size_t (*next_size)(void *); /* of the allocator whose free is the next; NULL if it has none */
static int (*next_munmap)(void *, size_t);

static int is_looking(void);
static void look(int at_end);

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

__attribute__((noreturn)) void _exit(int status)
{
    look(1);
    for (;;) syscall(SYS_exit_group, status);
}

__attribute__((destructor)) static void end(void) { look(1); }
