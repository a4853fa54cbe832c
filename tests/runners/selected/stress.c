/* stress THREADS: random allocations of all kinds at a selected site (chosen) and at another one, in threads and in a forked child
 * of each; each block keeps its content. Exits with 1 where one does not. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 300, STEPS = 20000 };
struct block {
    unsigned char *memory, value;
    size_t bytes;
};

#define SITE(name)                                                                                                             \
    __attribute__((noinline)) static void *name(void *old, size_t bytes, uint64_t way)                                         \
    {                                                                                                                          \
        void *got = NULL;                                                                                                      \
        size_t alignment = (size_t)16 << way / 8 % 12;                                                                         \
        if (old) got = realloc(old, bytes);                                                                                    \
        else if (way % 5 == 0) got = calloc(1, bytes);                                                                         \
        else if (way % 5 == 1 && posix_memalign(&got, alignment, bytes)) got = NULL;                                           \
        else if (way % 5 == 2) got = aligned_alloc(alignment, (bytes + alignment - 1) & -alignment);                           \
        else if (way % 5 == 3) got = reallocarray(NULL, 1, bytes);                                                             \
        else if (way % 5 == 4) got = malloc(bytes);                                                                            \
        if (!old && way % 5 == 1 && (uintptr_t)got % alignment) _exit(2);                                                      \
        if (!old && way % 5 == 2 && (uintptr_t)got % alignment) _exit(2);                                                      \
        if (!old && way % 5 == 0) for (size_t at = 0; at < bytes; at++) if (((char *)got)[at]) _exit(3);                           \
        return got;                                                                                                            \
    }
SITE(selected)
SITE(other)

static void check(const struct block *block, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += at + 64 < bytes ? 61 : 1)
        if (block->memory[at] != block->value) _exit(1);
}

static void *run(void *seed)
{
    struct block *blocks = calloc(BLOCKS, sizeof *blocks);
    uint64_t random = (uintptr_t)seed * 2654435761u + 88172645463325252u;
    for (int step = 0; step < STEPS; step++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        struct block *block = &blocks[random % BLOCKS];
        uint64_t way = random >> 20;
        size_t bytes = 1 + (random >> 40) % ((size_t)16 << (way >> 8) % 14);
        if (way % 999 == 0) bytes = (size_t)33 << 20;
        if (block->memory) check(block, block->bytes);
        if (block->memory && malloc_usable_size(block->memory) < block->bytes) _exit(4);
        if (block->memory && way % 3) {
            free(block->memory);
            block->memory = NULL;
        }
        size_t before = block->memory ? block->bytes : 0;
        block->memory = way % 2 ? selected(block->memory, bytes, way / 16) : other(block->memory, bytes, way / 16);
        if (!block->memory) _exit(5);
        if (before) check(block, before < bytes ? before : bytes);
        block->value = (unsigned char)random;
        block->bytes = bytes;
        memset(block->memory, block->value, bytes);
        if (step == STEPS / 2) {
            pid_t child = fork();
            int status = 0;
            if (!child) {
                for (int number = 0; number < BLOCKS; number++) {
                    struct block *of = &blocks[number];
                    if (of->memory) check(of, of->bytes), free(of->memory);
                    of->memory = selected(NULL, 100, 4);
                }
                _exit(0);
            }
            if (waitpid(child, &status, 0) != child || status) _exit(6);
        }
    }
    for (int number = 0; number < BLOCKS; number++) free(blocks[number].memory);
    free(blocks);
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[16];
    int number = count > 1 ? atoi(arguments[1]) : 1;
    for (int thread = 0; thread < number; thread++) pthread_create(&threads[thread], NULL, run, (void *)(uintptr_t)(thread + 1));
    for (int thread = 0; thread < number; thread++) pthread_join(threads[thread], NULL);
    return 0;
}
