/* The CPUs that this process is bound to, where its memory is, and what it can use, from /proc and /sys. */
#ifndef PAGEWISE_BOUND_H
#define PAGEWISE_BOUND_H

#include <stdbool.h>
#include <stdint.h>

enum { PW_BOUND_MOST_CPUS = 16384 };

/* Add the numbers of a list in the kernel's format to a set of PW_BOUND_MOST_CPUS. */
void pw_bound_add_list(const char *list, bool *set);

/* The CPUs on which threads of this process may run, all threads together, in the kernel's list format: 0-3,8. At most
   `length` characters with the null character; empty if unknown or too long. */
void pw_bound_cpus(char *list, int32_t length);

/* The memory policy of this process as numa_maps shows it (default, local, bind:0, interleave:0-3), and the bytes of its
   memory, except files', on NUMA nodes 0 to n - 1. Returns their number: the last node with memory, plus one.
   Unknown: the policy is empty and the number 0. */
int32_t pw_bound_memory(char *policy, int32_t length, int32_t n, int64_t bytes[]);

/* Bytes of the last-level caches next to the CPUs of a list, each cache once; 0 if unknown. At most 32 MiB per CPU in a virtual
   machine. `root` stands for /: tests pass another. */
int64_t pw_caches_last_level(const char *root, const char *cpus);

/* Bytes that new programs can use: the kernel's estimate, at most the limits of the control groups of this process; 0 if
   unknown. */
int64_t pw_caches_free_memory(const char *root);

#endif
