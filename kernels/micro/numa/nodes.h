/* Lines of memory on one NUMA node, accessed by CPUs of another. */
#ifndef PAGEWISE_NODES_H
#define PAGEWISE_NODES_H

#include "pw_vector.h"

#define PW_LINE_WORDS (PW_LINE_BYTES / 8)

typedef struct pw_node_line {
    struct pw_node_line *next;
    int64_t rest[PW_LINE_WORDS - 1];
} pw_node_line;

/* The timed code: follow `hops` links from `start`; returns the last one. */
pw_node_line *pw_node_chase(int64_t hops, pw_node_line *start);

/* The timed code: the sum, modulo 2^64, of all words of lines `first` to `last`, counted from 1. */
int64_t pw_node_sum(const pw_node_line *line, int64_t first, int64_t last);

/* Link n lines, a power of two, to one pseudo-random cycle that starts at the first, and fill each other word with a value of
 * its own, so that no other words have the same sum. */
void pw_node_join(int64_t n, pw_node_line *line);

/* The distance, in lines, of `at` from the end of `hops` hops along that cycle. */
int64_t pw_node_deviation(int64_t n, const pw_node_line *line, int64_t hops, const pw_node_line *at);

/* The expected sum, modulo 2^64, of `passes` passes over all n lines, without reading them. */
int64_t pw_node_expected(int64_t n, const pw_node_line *line, int64_t passes);

/* Store the CPUs on which the process may run. Once, before pw_node_go. */
void pw_node_begin(void);

/* The nodes with CPUs, or with memory, as "0,1": a text of at most `length` characters with the null character. Node 0
 * only, if the operating system does not support nodes. */
void pw_node_list(int32_t with_memory, char *text, int32_t length);

/* Bind the calling thread to the CPUs of one node, and its first touches to another. 0, the errno of the
 * failure, or -1 if the process may run on no CPU of the node. */
int32_t pw_node_bind(int64_t cpu_node, int64_t memory_node);

/* The number of base pages of the first `bytes` bytes at `address` that are not on the node; -1 if the operating system does
 * not report it. */
int64_t pw_node_misplaced(const void *address, int64_t bytes, int64_t node);

#endif
