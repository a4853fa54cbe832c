/* The caches that CPUs can reach, and the memory that a program can use, from /sys and /proc. */
#ifndef PAGEWISE_CACHES_H
#define PAGEWISE_CACHES_H

#include <stdint.h>

/* Bytes of the last-level caches next to the CPUs of a list such as 0-3,8, each cache once; 0: not reported. In a virtual
   machine at most 32 MiB per CPU. `root` stands for / (tests pass another). */
int64_t pw_caches_last_level(const char *root, const char *cpus);

/* Bytes that new programs can use: the kernel's estimate, at most the limits of the control groups of this process; 0: not
   reported. */
int64_t pw_caches_free_memory(const char *root);

#endif
