/* The timed code of pointer_chase. */
#ifndef PAGEWISE_POINTER_CHASE_H
#define PAGEWISE_POINTER_CHASE_H

#include "pw_chase.h"

enum { pw_most_chains = 16 };

/* Follow `hops` links of each of `chains` chains concurrently; at[] holds their starts, then their ends. */
void pw_chase(int64_t hops, int64_t chains, pw_link *at[]);

#endif
