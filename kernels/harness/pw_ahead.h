/* How timed code of prefetch=software prefetches what it uses later: a part of a call. pw_prefetching.f90 declares the same type.
 *
 * Source: A64FX micro-architecture guide (Fujitsu, 2021): distances of L1 and L2, prefetch instructions, surplus streams. */
#ifndef PAGEWISE_AHEAD_H
#define PAGEWISE_AHEAD_H

#include <stdint.h>

/* Bits of `mode`: prefetch also into L2; by SVE's prefetches of a vector (PRFD) instead of those of a line (PRFM); only the
 * surplus streams, beyond those that a hardware prefetcher follows. */
enum { PW_AHEAD_L2 = 1, PW_AHEAD_SVE = 2, PW_AHEAD_SURPLUS = 4 };

/* Streams that the hardware's prefetchers follow: the entries of the prefetch queue of the A64FX. */
#define PW_FOLLOWED 16

/* Distances in bytes, into L1 and into L2. */
struct pw_ahead {
    int64_t read[2], written[2];
    int64_t mode;
};

#endif
