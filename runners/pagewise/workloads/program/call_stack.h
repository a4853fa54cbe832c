/* The return addresses on the stack, for preloaded libraries that look at them at each allocation.
 *
 * Unwinding takes longer than an allocation, so the distance from a return address on the stack to the next one is remembered
 * by return address: it is constant except for functions with arrays of variable length. Those are noticed by an unknown
 * address at that distance, and are then unwound each time. The library that includes this defines before_unwinding() and
 * after_unwinding().
 */
#ifndef PAGEWISE_CALL_STACK_H
#define PAGEWISE_CALL_STACK_H

#include "here.h"

#include <execinfo.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Not by a function of the loader, which may allocate. */
#define OF_THREAD static __thread __attribute__((tls_model("initial-exec")))

enum { MOST_FRAMES = 14, FURTHER_FRAMES = 8 /* of the library and of those that it calls */ };
enum { TABLE_BITS = 16, MOST_PROBES = 16, MOST_WORDS = 2048, VARIES = 0xffff };

static void before_unwinding(void);
static void after_unwinding(void);

/* Return address << 16 | words on the stack to the next one; 0: outermost. Each is stored at once: threads need no lock. */
static volatile uint64_t distances[1 << TABLE_BITS];

static inline uint64_t first_place(uintptr_t address)
{
    return (uint64_t)address * UINT64_C(0x9e3779b97f4a7c15) >> (64 - TABLE_BITS);
}

/* The place of a return address in a table of such values; NULL if there is no room for another. */
static volatile uint64_t *place_of(volatile uint64_t *table, uintptr_t address)
{
    const uint64_t first = first_place(address);
    for (uint64_t i = 0; i < MOST_PROBES; i++) {
        volatile uint64_t *place = &table[(first + i) & ((1 << TABLE_BITS) - 1)];
        const uint64_t known = *place;
        if (known == 0 || known >> 16 == address) return place;
    }
    return NULL;
}

/* The words from this return address on the stack to the next one; 0: outermost, VARIES: unknown. */
static uint64_t distance_at(const uintptr_t *slot)
{
    const volatile uint64_t *place = place_of(distances, *slot);
    const uint64_t known = place == NULL ? 0 : *place;
    return known == 0 ? VARIES : known & VARIES;
}

/* The return addresses from the one at `slot` on by unwind tables, whose distances are remembered. Returns their number. */
static int unwind(const uintptr_t *slot, uintptr_t stack[MOST_FRAMES])
{
    enum { most = MOST_FRAMES + FURTHER_FRAMES };
    void *all[most];
    before_unwinding();
    const int depth = backtrace(all, most);
    after_unwinding();
    int skipped_frames = 0, frames = 0;
    while (skipped_frames < depth && (uintptr_t)all[skipped_frames] != *slot) skipped_frames++;
    for (; skipped_frames + frames < depth && frames < MOST_FRAMES; frames++) stack[frames] = (uintptr_t)all[skipped_frames + frames];
    if (frames == 0) {
        stack[0] = *slot;
        return 1;
    }
    for (int i = 0; i < frames; i++) {
        const bool outermost = depth < most && skipped_frames + i + 1 == depth;
        if (i + 1 == frames && !outermost) break;
        uint64_t words = outermost ? 0 : 1;
        while (!outermost && words < MOST_WORDS && slot[words] != stack[i + 1]) words++;
        volatile uint64_t *place = place_of(distances, stack[i]);
        const uint64_t known = place == NULL ? 0 : *place;
        const bool differs = known != 0 && (known & VARIES) != words;
        if (words == MOST_WORDS || differs) words = VARIES;
        if (place != NULL) *place = (uint64_t)stack[i] << 16 | words;
        if (words == VARIES) break;
        slot += words;
    }
    return frames;
}

#endif
