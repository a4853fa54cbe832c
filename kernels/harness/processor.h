/* What timed code takes for granted of the processor that it runs on. */
#ifndef PAGEWISE_PROCESSOR_H
#define PAGEWISE_PROCESSOR_H

#include <stdint.h>

/* Bytes that DC ZVA zeroes, from DCZID_EL0; 0 where that is forbidden, or another architecture. */
int64_t pw_zero_bytes(void);

/* Bits of the SVE vectors that the build takes for granted (-msve-vector-bits), and of those that the processor gives this
 * process; 0 where there are none, or the build runs with any. */
int64_t pw_sve_bits_built(void);
int64_t pw_sve_bits(void);

#endif
