/* Lines of an array that are written completely: allocated in the cache and zeroed in advance instead of read from memory:
 * stores=zfill, by DC ZVA of aarch64. The processor defines the size that the instruction zeroes (DCZID_EL0), which need
 * not be a cache line; pieces that are not written completely are not zeroed.
 *
 * Source: A64FX micro-architecture guide (Fujitsu, 2021), fast stores (zfill); Arm ARM, DC ZVA. */
#ifndef PAGEWISE_ZERO_H
#define PAGEWISE_ZERO_H

#include "processor.h"
#include "pw_vector.h"

#if defined(PW_STORES_ZFILL) && !defined(__aarch64__)
#error "stores=zfill needs aarch64 (DC ZVA): build with stores=regular or nontemporal"
#endif

/* The part of an array still to be zeroed in a pass: from `next` up to `end`. */
struct pw_zeroing {
    char *next, *end;
    int64_t distance;
    int64_t bytes; /* zeroed by one instruction; 0: none */
};

/* Begin with n elements of `size` bytes each, all of which the pass writes in ascending order; `ahead` bytes of them are
 * zeroed before they are written. */
PW_INLINE struct pw_zeroing pw_zero_begin(void *first, int64_t n, size_t size, int64_t distance)
{
    struct pw_zeroing zero = {0};
#if defined(PW_STORES_ZFILL)
    if (n <= 0) return zero;
    zero.bytes = pw_zero_bytes();
    zero.distance = distance;
    if (zero.bytes == 0) return zero;
    zero.next = (char *)first + (0 - (uintptr_t)first) % (uintptr_t)zero.bytes;
    zero.end = (char *)first + n * (int64_t)size;
#else
    (void)first, (void)n, (void)size, (void)distance;
#endif
    return zero;
}

/* Zero the pieces that start before `position`, the end of the next write, or up to `ahead` bytes beyond it. Pieces already
 * partly written are never zeroed: they started before an earlier position. */
PW_INLINE void pw_zero_until(struct pw_zeroing *zero, void *position)
{
#if defined(PW_STORES_ZFILL)
    for (; zero->next - (char *)position < zero->distance && zero->end - zero->next >= zero->bytes && zero->bytes > 0;
         zero->next += zero->bytes)
        __asm__ volatile("dc zva, %0" ::"r"(zero->next) : "memory");
#else
    (void)zero, (void)position;
#endif
}

/* Everything before `position` has been written without zeroing: it must not be zeroed any more. */
PW_INLINE void pw_zero_skip(struct pw_zeroing *zero, void *position)
{
#if defined(PW_STORES_ZFILL)
    if (zero->bytes == 0 || zero->next >= (char *)position) return;
    zero->next = (char *)position + (0 - (uintptr_t)position) % (uintptr_t)zero->bytes;
#else
    (void)zero, (void)position;
#endif
}

#endif
