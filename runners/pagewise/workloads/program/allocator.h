/* The functions of the program's allocator that preloaded libraries replace: those of the next library that has them. */
#ifndef PAGEWISE_ALLOCATOR_H
#define PAGEWISE_ALLOCATOR_H

#include "next.h"

struct allocator {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    size_t (*malloc_usable_size)(void *);
};

static void find_allocator(struct allocator *allocator)
{
    static const char *const names[] = {"malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "memalign",
                                        "malloc_usable_size"};
    for (size_t number = 0; number < sizeof names / sizeof *names; number++) {
        void *function = next_function(names[number]);
        memcpy((char *)allocator + number * sizeof function, &function, sizeof function);
    }
}

#endif
