/* A chain of operations whose length in cycles is known. */
#ifndef PAGEWISE_CYCLES_H
#define PAGEWISE_CYCLES_H

#include <stdint.h>

/* Run a chain of about n cycles; returns how many it has, 0 on processors where that is not known. */
int64_t pw_cycles_pass(int64_t n);

#endif
