/* A program whose memory has known origins and, on a TLB of 8 entries, known page walks: each touch of a page misses. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { page = 4096 };

static char table[128 * page];

static void touch(volatile char *memory, int pages, int times)
{
    for (int k = 0; k < times; k++)
        for (int i = 0; i < pages; i++) memory[i * page] = (char)k;
}

__attribute__((noinline)) static char *xmalloc(size_t bytes)
{
    char *memory = malloc(bytes);
    if (memory == NULL) exit(1);
    return memory;
}

__attribute__((noinline)) static void repeated(void)
{
    char *memory = xmalloc(64 * page);
    touch(memory, 64, 100);
    free(memory);
}

__attribute__((noinline)) static void sequential(void)
{
    char *memory = xmalloc(1000 * page);
    touch(memory, 1000, 1);
    free(memory);
}

/* Address space, of which a part becomes memory. */
__attribute__((noinline)) static void reserved(void)
{
    char *memory = mmap(NULL, 1000 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory + 500 * page, 40 * page, PROT_READ | PROT_WRITE);
    touch(memory + 500 * page, 40, 50);
    munmap(memory, 1000 * page);
}

/* Two blocks at one address. */
__attribute__((noinline)) static char *first_use(void)
{
    char *memory = xmalloc(16 * page);
    touch(memory, 16, 100);
    free(memory);
    return memory;
}

__attribute__((noinline)) static void second_use(const char *expected)
{
    char *memory = xmalloc(16 * page);
    if (memory != expected) exit(1);
    touch(memory, 16, 50);
    free(memory);
}

__attribute__((noinline)) static void grown(void)
{
    char *memory = calloc(4, page);
    memory = realloc(memory, 200 * page);
    if (memory == NULL) exit(1);
    touch(memory, 200, 20);
    free(memory);
}

struct node {
    struct node *next;
    char filler[page / 2];
};

__attribute__((noinline)) static void nodes(void)
{
    struct node *head = NULL;
    for (int i = 0; i < 200; i++) {
        struct node *node = (struct node *)xmalloc(sizeof *node);
        node->next = head;
        head = node;
    }
    for (int k = 0; k < 50; k++)
        for (volatile struct node *node = head; node != NULL; node = node->next) continue;
}

/* The size of its stack varies. */
__attribute__((noinline)) static void variable(int pages)
{
    volatile char space[pages * 64];
    space[0] = 1;
    char *memory = xmalloc(32 * page);
    touch(memory, 32, 10);
    free(memory);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "fails") == 0) return 5;
    if (argc > 1 && strcmp(argv[1], "forks") == 0) {
        const pid_t child = fork();
        if (child == 0) touch(table, 128, 100);
        return child == 0 ? 0 : waitpid(child, NULL, 0) != child;
    }
    repeated();
    sequential();
    reserved();
    touch(table, 128, 10);
    second_use(first_use());
    grown();
    nodes();
    for (int i = 1; i <= 20; i++) variable(i);
    return 0;
}
