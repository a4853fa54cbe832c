/* A chase on one thread, and the load of the others. */
#ifndef PAGEWISE_LOADED_LATENCY_H
#define PAGEWISE_LOADED_LATENCY_H

#include "pw_chase.h"

/* Follow `hops` links from *at, then set *stop. */
void pw_chase_and_stop(int64_t hops, pw_link **at, int32_t *stop);

/* What a thread did since the start: groups of lines, and the sum of all words that it loaded. */
struct pw_load_done {
    int64_t groups;
    uint64_t sum;
};

/* At least one group of lines, and others until *stop is set: load `reads` lines, store `writes` lines, and wait `delay`
 * iterations of an empty loop after each line. `line` is first the lines that are loaded, `reads` of each of `groups` groups, then
 * those that are stored; after the last group comes the first. A stored line holds the number of its group in all words, counted
 * from 1. */
void pw_load_until(const int32_t *stop, void *line, int64_t groups, int64_t reads, int64_t writes, int64_t delay,
                   struct pw_load_done *done);

#endif
