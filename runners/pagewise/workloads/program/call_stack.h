/* The return addresses on the stack, for preloaded libraries that look at them at each allocation (x86-64, aarch64).
 *
 * Unwinding takes longer than an allocation, so the step from each return address outwards to the next one is remembered: the
 * distance on the stack, or that the frame pointer leads there. A frame pointer is known as long as each function on the way
 * leaves it alone or saves it at a known place. The stack is unwound where an address is new, or its step is not always the same.
 * The libraries are compiled without calls that replace the caller's frame. The one that includes this defines before_unwinding()
 * and after_unwinding().
 */
#ifndef PAGEWISE_CALL_STACK_H
#define PAGEWISE_CALL_STACK_H

#include "here.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unwind.h>

/* Not by a function of the loader, which may allocate. */
#define OF_THREAD static __thread __attribute__((tls_model("initial-exec")))

#ifdef __x86_64__
enum { HAS_DISTANCES = 1, FRAME_POINTER = 6 /* its number for debuggers */ };
#else
enum { HAS_DISTANCES = 0 /* no table has the place of a return address, only frame records do */, FRAME_POINTER = 29 };
#endif

enum { MOST_FRAMES = 14, TABLE_BITS = 18, MOST_PROBES = 16, MOST_WORDS = 1 << 20 };

/* A step, in 16 bits. */
enum {
    PAIRS = 0xfff, /* pairs of words to the next return address; none: this one is the outermost */
    VARIES = PAIRS,
    BY_POINTER = 0x1000, /* the next return address is above the word that the frame pointer points to; no pairs: at any distance */
    SAVED = 13,          /* from this bit on: how many words below the next address the caller's frame pointer is, or: */
    NOT_SEEN = 0,
    MOST_SAVED = 5,
    UNCHANGED,
    ELSEWHERE
};

/* A place on the stack with a return address, and the frame pointer of the function there; 0: unknown. */
struct frame {
    const uintptr_t *slot;
    uintptr_t pointer;
};

/* The return address at a place of the stack, without the signature that aarch64 may give it. */
static inline uintptr_t address_at(const uintptr_t *slot) { return HAS_DISTANCES ? *slot : *slot & UINT64_C(0xffffffffffff); }

static void before_unwinding(void);
static void after_unwinding(void);

/* Return address << 16 | step. Each is stored at once: threads need no lock. */
static volatile uint64_t steps[1 << TABLE_BITS];

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

/* The place of a return address for a frame pointer. */
static inline const uintptr_t *above(uintptr_t pointer) { return (const uintptr_t *)(pointer + sizeof pointer); }

static inline unsigned saved_of(unsigned step) { return step >> SAVED; }

/* The frame of the library's function whose caller's return address is at `slot`. */
static inline struct frame first_frame(const uintptr_t *slot) { return (struct frame){slot, slot[-1]}; }

enum outwards { FOLLOWED, OUTERMOST, UNKNOWN };

/* Goes from a frame to the next one outwards. UNKNOWN: the stack must be unwound. */
static enum outwards step_outwards(struct frame *frame)
{
    const volatile uint64_t *place = place_of(steps, address_at(frame->slot));
    const uint64_t known = place == NULL ? 0 : *place;
    const unsigned step = known & 0xffff, saved = saved_of(step);
    const bool by_pointer = step & BY_POINTER;
    if (known == 0 || (step & PAIRS) == VARIES || (by_pointer && frame->pointer == 0)) return UNKNOWN;
    const uintptr_t *slot = by_pointer ? above(frame->pointer) : frame->slot + 2 * (step & PAIRS);
    if (!by_pointer && slot == frame->slot) return OUTERMOST;
    if ((uintptr_t)slot % sizeof *slot != 0 || slot <= frame->slot || slot > frame->slot + MOST_WORDS) return UNKNOWN;
    if (saved == NOT_SEEN || saved == ELSEWHERE) frame->pointer = 0;
    if (saved != NOT_SEEN && saved <= MOST_SAVED) frame->pointer = slot[-(ptrdiff_t)saved];
    frame->slot = slot;
    return FOLLOWED;
}

/* What unwinding found from the frame at `first` on. */
struct unwound {
    const uintptr_t *first;
    int count; /* may be one more than MOST_FRAMES, whose frame is then not in the array */
    uintptr_t pointer; /* of the function that was called last */
    struct frame frames[MOST_FRAMES];
    uintptr_t addresses[MOST_FRAMES];
};

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *argument)
{
    struct unwound *result = argument;
    const uintptr_t pointer = _Unwind_GetGR(context, FRAME_POINTER), end = _Unwind_GetCFA(context);
    const uintptr_t *slot = HAS_DISTANCES ? (const uintptr_t *)end - 1 : above(result->pointer);
    result->pointer = pointer;
    if (result->count == 0 && slot != result->first) return _URC_NO_REASON; /* of the library */
    if (_Unwind_GetIP(context) == 0 || result->count++ == MOST_FRAMES) return _URC_NORMAL_STOP; /* 0: there is none outwards */
    result->addresses[result->count - 1] = _Unwind_GetIP(context);
    result->frames[result->count - 1] = (struct frame){slot, pointer};
    return _URC_NO_REASON;
}

/* How many words below the next return address a function saved its caller's frame pointer. */
static unsigned where_saved(const struct frame *frame, const struct frame *next)
{
    unsigned words = 1;
    if (frame->pointer == next->pointer) return UNCHANGED;
    while (words <= MOST_SAVED && next->slot[-(ptrdiff_t)words] != next->pointer) words++;
    return words <= MOST_SAVED ? words : ELSEWHERE;
}

/* The step from frame `i` to the next one, which is not the outermost. */
static unsigned step_between(const struct unwound *result, int i)
{
    const struct frame *frame = &result->frames[i], *next = frame + 1;
    const uintptr_t *pointed = above(frame->pointer);
    const ptrdiff_t words = next->slot - frame->slot;
    const bool is_distance = HAS_DISTANCES && words % 2 == 0 && words < 2 * VARIES;
    if (words <= 0 || address_at(next->slot) != result->addresses[i + 1]) return VARIES;
    if (pointed == next->slot) return (is_distance ? (unsigned)words / 2 : 0) | BY_POINTER | 1 << SAVED;
    /* Of an aligned frame: its return address is there once more. */
    const bool is_copied = frame->slot < pointed && pointed < next->slot && frame->pointer % sizeof *pointed == 0 && *pointed == *next->slot;
    if (!is_distance || is_copied) return VARIES;
    unsigned saved = NOT_SEEN;
    for (int outer = i + 2; outer < result->count && outer < MOST_FRAMES && saved == NOT_SEEN; outer++)
        if (above(next->pointer) == result->frames[outer].slot) saved = where_saved(frame, next);
    return (unsigned)words / 2 | saved << SAVED;
}

/* The step that is right for two stacks. */
static unsigned combine(unsigned one, unsigned other)
{
    const unsigned of_one = saved_of(one), of_other = saved_of(other), pairs = one & PAIRS;
    const bool is_same = pairs == (other & PAIRS);
    if (one & other & BY_POINTER) return is_same ? one : one & ~(unsigned)PAIRS;
    if (!is_same) return VARIES;
    if ((one | other) & BY_POINTER) return pairs == 0 ? VARIES : one & BY_POINTER ? other : one; /* it pointed there by chance */
    if (of_one == of_other || of_other == NOT_SEEN) return one;
    return of_one == NOT_SEEN ? other : pairs | ELSEWHERE << SAVED;
}

/* The return addresses from the one at `slot` on by unwind tables. Remembers the steps; returns their number. */
static int unwind(const uintptr_t *slot, uintptr_t stack[MOST_FRAMES])
{
    struct unwound result = {.first = slot};
    before_unwinding();
    _Unwind_Backtrace(note_frame, &result);
    after_unwinding();
    const int frames = result.count < MOST_FRAMES ? result.count : MOST_FRAMES;
    for (int i = 0; i < frames; i++) {
        stack[i] = result.addresses[i];
        if (i + 1 == MOST_FRAMES) break;
        volatile uint64_t *place = place_of(steps, stack[i]);
        const unsigned step = i + 1 == frames ? 0 : step_between(&result, i);
        if (place != NULL) *place = (uint64_t)stack[i] << 16 | (*place == 0 ? step : combine(*place & 0xffff, step));
    }
    if (frames == 0) stack[0] = address_at(slot);
    return frames == 0 ? 1 : frames;
}

/* The return addresses from the one at `slot` on. Returns their number. */
static inline int stack_of(const uintptr_t *slot, uintptr_t stack[MOST_FRAMES])
{
    struct frame frame = first_frame(slot);
    for (int frames = 0; frames < MOST_FRAMES;) {
        stack[frames++] = address_at(frame.slot);
        const enum outwards way = frames == MOST_FRAMES ? OUTERMOST : step_outwards(&frame);
        if (way == OUTERMOST) return frames;
        if (way == UNKNOWN) return unwind(slot, stack);
    }
    return MOST_FRAMES;
}

#endif
