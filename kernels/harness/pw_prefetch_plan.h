/* How timed code of prefetch=software prefetches what it uses later: a part of a call.
 *
 * Source: A64FX micro-architecture guide (Fujitsu, 2021): distances of L1 and L2, prefetch instructions, surplus streams. */
#ifndef PAGEWISE_PREFETCH_PLAN_H
#define PAGEWISE_PREFETCH_PLAN_H

#include <stdint.h>

/* Bits of `mode`: prefetch also into L2; by SVE's prefetches of a vector (PRFD) instead of those of a line (PRFM); only the
 * surplus streams, beyond those that a hardware prefetcher follows. */
enum { PW_PREFETCH_INTO_L2 = 1, PW_PREFETCH_SVE = 2, PW_PREFETCH_SURPLUS = 4 };

/* Streams that the hardware's prefetchers follow: the entries of the prefetch queue of the A64FX. */
#define PW_FOLLOWED 16

/* Distances in bytes, into L1 and into L2. */
struct pw_prefetch_plan {
    int64_t read[2], written[2];
    int64_t mode;
};

#endif
