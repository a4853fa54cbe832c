/* A program whose memory is on a known number of base and huge pages. */
#include <stdlib.h>

enum { page = 4096, huge = 1 << 21 };

static char table[12 * huge];

static char *xmemalign(size_t huge_pages)
{
    char *memory = aligned_alloc(huge, huge_pages * huge);
    if (memory == NULL) exit(1);
    return memory;
}

/* One base page of each of 12 huge pages, in turn: misses on huge pages as well. */
__attribute__((noinline)) static void far_apart(void)
{
    volatile char *memory = xmemalign(12);
    for (int k = 0; k < 50; k++)
        for (int i = 0; i < 12; i++) memory[(size_t)i * huge + i * page] = 1;
}

/* 1000 base pages of two huge pages, page after page. */
__attribute__((noinline)) static void dense(void)
{
    volatile char *memory = xmemalign(2);
    for (int k = 0; k < 10; k++)
        for (int i = 0; i < 1000; i++) memory[i * page] = 1;
}

/* The same, in an order in which no page follows the one next to it. */
__attribute__((noinline)) static void scattered(void)
{
    volatile char *memory = xmemalign(2);
    for (int k = 0; k < 10; k++)
        for (int i = 0; i < 1000; i++) memory[(i * 387 % 1000) * page] = 1;
}

/* 2000 steps along a ring of pages, each with the address of the next. */
__attribute__((noinline)) static void chain(void)
{
    char *memory = xmemalign(1);
    for (int i = 0; i < 100; i++) *(void **)(void *)(memory + i * 37 % 100 * page) = memory + (i + 1) * 37 % 100 * page;
    void *volatile *at = (void *)memory;
    for (int i = 0; i < 2000; i++) at = *at;
}

int main(void)
{
    chain();
    far_apart();
    dense();
    scattered();
    volatile char *first = table;
    for (int k = 0; k < 20; k++)
        for (int i = 0; i < 12; i++) first[(size_t)i * huge] = 1;
    return 0;
}
