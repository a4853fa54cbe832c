/* Properties of the processor that timed code relies on. */
#ifndef PAGEWISE_PROCESSOR_H
#define PAGEWISE_PROCESSOR_H

#include <stdint.h>

/* Bytes that DC ZVA zeroes, from DCZID_EL0; 0 if that is forbidden, or on another architecture. */
int64_t pw_zero_bytes(void);

/* Whether the build has SVE's instructions: 1 or 0. */
int32_t pw_sve_built(void);

/* PW_FOLLOWED. */
int32_t pw_streams_followed(void);

/* Bits of the SVE vectors that the build relies on (-msve-vector-bits), and of those that the processor gives this
 * process; 0 if there are none, or the build runs with any length. A build for any length that starts with another one than
 * PAGEWISE_SVE_BITS starts itself again with that. Compiled code may keep what depends on the length on its stack, so that
 * it cannot change inside of a process. */
int64_t pw_sve_bits_built(void);
int64_t pw_sve_bits(void);

/* Run a chain of about n cycles; returns its actual number of cycles, 0 on processors for which it is unknown. */
int64_t pw_cycles_pass(int64_t n);

#endif
