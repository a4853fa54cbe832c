/* A cycle of cache lines, each of which holds the address of the next. */
#ifndef PAGEWISE_CHASE_H
#define PAGEWISE_CHASE_H

#include "pw_vector.h"

typedef struct pw_link {
    struct pw_link *next;
    int64_t place; /* number of the line along the cycle, from 0 */
    char rest[PW_LINE_BYTES - 16];
} pw_link;

/* Link the first n lines of `line` to one cycle that starts at the first line. step > 0: every step-th line, then again
 * from the second line on, and so on. Otherwise in random order determined by `seed`, but all of `local` adjacent lines
 * before the next such group. `order` is scratch space for n + n / local + 1 numbers. */
void pw_chase_join(int64_t n, pw_link *line, int64_t step, int64_t local, int64_t seed, int64_t order[]);

/* Spread the starts of `chains` chains evenly along the cycle of n lines in this order. */
void pw_chase_start(int64_t n, pw_link *line, const int64_t order[], int64_t chains, pw_link *at[]);

/* The position of a line along the cycle, from 0. */
int64_t pw_chase_place(const pw_link *link);

#endif
