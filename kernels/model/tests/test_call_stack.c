/* The remembered steps against glibc's backtrace(), for frames of all sorts and from two sites. */
#define _GNU_SOURCE
#include "call_stack.h"
#include "expect.h"

#include <alloca.h>
#include <execinfo.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline))

enum { ROUNDS = 50 };

static int unwound;
static volatile uintptr_t sink;

static void before_unwinding(void) { unwound++; }
static void after_unwinding(void) {}

APART static void allocate(void)
{
    uintptr_t stack[MOST_FRAMES];
    void *expected[2 * MOST_FRAMES];
    const uintptr_t *slot = HERE;
    const int frames = stack_of(slot, stack), depth = backtrace(expected, 2 * MOST_FRAMES);
    int skipped = 0;
    while (skipped < depth && (uintptr_t)expected[skipped] != address_at(slot)) skipped++;
    EXPECT(skipped < depth);
    EXPECT(frames == (depth - skipped < MOST_FRAMES ? depth - skipped : MOST_FRAMES));
    for (int i = 0; i < frames && skipped + i < depth; i++) EXPECT(stack[i] == (uintptr_t)expected[skipped + i]);
}

/* Its frame pointer is found through functions that save it or leave it alone. */
APART static void plain(uintptr_t number)
{
    allocate();
    sink += number;
}

/* All saved registers are in use, the frame pointer too. */
APART static void busy_registers(uintptr_t number)
{
    uintptr_t a = sink + 1, b = a * number, c = b ^ a, d = c * 3, e = d + b, f = e ^ c, g = f * 5;
    plain(number);
    sink += a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7;
    plain(a ^ b);
    sink += a ^ b ^ c ^ d ^ e ^ f ^ g;
}

APART static void variable_length(uintptr_t number)
{
    char *room = alloca(16 + number * 48);
    memset(room, (int)number, 16 + number * 48);
    busy_registers(number);
    sink += (uintptr_t)room[number];
}

APART static void large(uintptr_t number)
{
    volatile char room[100000];
    room[number] = 1;
    busy_registers(number);
    sink += (uintptr_t)room[number];
}

APART static void aligned(uintptr_t number)
{
    volatile _Alignas(256) char room[256];
    room[number] = 1;
    plain(number);
    sink += (uintptr_t)room[number];
}

APART static void recursive(uintptr_t depth, void (*inner)(uintptr_t))
{
    if (depth == 0)
        inner(sink % 7);
    else
        recursive(depth - 1, inner);
    sink++;
}

static int compare(const void *one, const void *other)
{
    allocate();
    return *(const int *)one - *(const int *)other;
}

APART static void through_library(uintptr_t number)
{
    int numbers[] = {(int)number, 3, 1, 2};
    qsort(numbers, 4, sizeof *numbers, compare);
    sink += (uintptr_t)numbers[0];
}

APART static void repeat(void (*sort)(uintptr_t), uintptr_t deepest)
{
    for (int round = 0; round < ROUNDS; round++) {
        recursive((uintptr_t)round % (deepest + 1), sort);
        variable_length((uintptr_t)round % 20);
        sort((uintptr_t)round % 5);
    }
}

/* How often the stack is unwound when all has been seen. */
static int unwindings(void (*sort)(uintptr_t), uintptr_t deepest)
{
    for (volatile int pass = 0; pass < 2; pass++) { /* both from the same address */
        unwound = 0;
        repeat(sort, deepest);
    }
    return unwound;
}

int main(void)
{
    EXPECT(unwindings(plain, 20) == 0);
    EXPECT(unwindings(busy_registers, 20) == 0);
    EXPECT(unwindings(variable_length, 20) == 0);
    EXPECT(unwindings(through_library, 20) == 0);
    /* These may be unwound each time. */
    unwindings(large, 3);
    unwindings(aligned, 3);
    return reported_faults();
}
