/* What this process is bound to, and where its memory is: by what the kernel tells of it in /proc. */
#ifndef PAGEWISE_BOUND_H
#define PAGEWISE_BOUND_H

#include <stdint.h>

/* The CPUs on which threads of this process may run, all threads together, as the kernel writes lists: 0-3,8. At most
   `length` characters with the null character; empty where it is not told or does not fit. */
void pw_bound_cpus(char *list, int32_t length);

/* The memory policy of this process as numa_maps tells it (default, local, bind:0, interleave:0-3), and the bytes of its
   memory, but for files', on NUMA nodes 0 to n - 1. Returns how many of these there are: the last that has some, plus one.
   The policy is empty and the number 0 where the kernel does not tell. */
int32_t pw_bound_memory(char *policy, int32_t length, int32_t n, int64_t *bytes);

#endif
