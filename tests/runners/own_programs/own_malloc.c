/* A malloc without malloc_usable_size: each block ends before a page without access, and what lies before it is unreadable. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, MOST = 4096 };

static struct {
    char *block;
    size_t length;
} blocks[MOST];

void *malloc(size_t length)
{
    size_t whole = (length + PAGE) / PAGE * PAGE;
    char *start = mmap(NULL, whole + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED || mprotect(start + PAGE, whole, PROT_READ | PROT_WRITE)) return NULL;
    for (int number = 0; number < MOST; number++)
        if (!blocks[number].block) {
            blocks[number].block = start + PAGE, blocks[number].length = length;
            return start + PAGE;
        }
    errno = ENOMEM;
    return NULL;
}

void free(void *memory)
{
    for (int number = 0; memory && number < MOST; number++)
        if (blocks[number].block == memory) {
            munmap((char *)memory - PAGE, (blocks[number].length + PAGE) / PAGE * PAGE + 2 * PAGE);
            blocks[number].block = NULL;
            return;
        }
}

void *calloc(size_t count, size_t length) { return malloc(count * length); }

void *realloc(void *memory, size_t length)
{
    void *fresh = malloc(length);
    for (int number = 0; memory && fresh && number < MOST; number++)
        if (blocks[number].block == memory)
            memcpy(fresh, memory, blocks[number].length < length ? blocks[number].length : length);
    free(memory);
    return fresh;
}
