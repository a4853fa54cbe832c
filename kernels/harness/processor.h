/* Properties of the processor that timed code relies on. */
#ifndef PAGEWISE_PROCESSOR_H
#define PAGEWISE_PROCESSOR_H

#include <stdint.h>

/* Bytes that DC ZVA zeroes, from DCZID_EL0; 0 if that is forbidden, or on another architecture. */
int64_t pw_zero_bytes(void);

/* Bits of the SVE vectors that the build relies on (-msve-vector-bits), and of those that the processor gives this
 * process; 0 if there are none, or the build runs with any length. */
int64_t pw_sve_bits_built(void);
int64_t pw_sve_bits(void);

#endif
