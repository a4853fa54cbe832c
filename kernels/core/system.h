/* Facts that the C library offers and Fortran does not: clock, faults, placement, host, appending to a file. */
#ifndef PAGEWISE_SYSTEM_H
#define PAGEWISE_SYSTEM_H

#include <stdint.h>

/* Seconds on the monotonic clock (resolution 1 ns on Linux), from an arbitrary start. */
double pw_system_seconds(void);

/* CPU time of the calling thread. */
double pw_system_thread_seconds(void);

/* Page faults of this process so far: served without and with I/O (getrusage). */
void pw_system_page_faults(int64_t *minor, int64_t *major);

/* The logical CPU and the NUMA node on which the calling thread runs now; -1 if the kernel does not report it. */
void pw_system_placement(int32_t *cpu, int32_t *numa_node);

/* Before threads are created: SIGUSR1 waits until pw_system_wait_for_turn sees it. */
void pw_system_begin_turns(void);

/* Stop all threads of this process until another process continues it (SIGCONT). Returns 1 if a signal SIGUSR1 has arrived:
   there is no further turn. */
int32_t pw_system_wait_for_turn(void);

/* Bytes of a base page. */
int64_t pw_system_base_page_size(void);

/* A fact as text of at most `length` characters with the null character: names of the node and of the processor, release of the
   operating system's kernel, or the date and time (ISO 8601). */
enum { pw_host_name = 1, pw_host_kernel, pw_host_cpu, pw_utc_now };
void pw_system_fact(int32_t fact, char *text, int32_t length);

/* Write n_bytes of text at the end of the file, completely or not at all (a short write is undone), so that
   records of several processes never mix. Returns 0, or the errno of the failure, with its text in `reason`. */
int32_t pw_system_append(const char *path, const char *text, int64_t n_bytes, char *reason, int32_t length);

#endif
