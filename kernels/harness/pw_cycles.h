/* A chain of operations whose length in cycles is known. */
#ifndef PAGEWISE_CYCLES_H
#define PAGEWISE_CYCLES_H

#include <stdint.h>

/* Run a chain of about n cycles; returns its actual number of cycles, 0 on processors for which it is unknown. */
int64_t pw_cycles_pass(int64_t n);

#endif
