/* A cycle of cache lines, each of which holds the address of the next. */
#ifndef PAGEWISE_CHASE_H
#define PAGEWISE_CHASE_H

#include "pw_vector.h"

typedef struct pw_link {
    struct pw_link *next;
    int64_t place; /* number of the line along the cycle, from 0 */
    char rest[PW_LINE_BYTES - 16];
} pw_link;

/* Follow `hops` links from `start`; returns where they end. */
pw_link *pw_chase(int64_t hops, pw_link *start);

/* Join the first n lines of `line` in one cycle of random order that starts at the first line; the order follows from
 * `seed` alone. `order` is scratch space for n numbers. */
void pw_chase_join(int64_t n, pw_link *line, int64_t seed, int64_t *order);

/* The place, along the cycle, of a line. */
int64_t pw_chase_place(const pw_link *link);

#endif
