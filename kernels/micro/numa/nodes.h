/* Lines of memory on one NUMA node, walked by CPUs of another. */
#ifndef PAGEWISE_NODES_H
#define PAGEWISE_NODES_H

#include "pw_vector.h"

enum { pw_line_words = PW_LINE_BYTES / 8 };

typedef struct pw_node_line {
    struct pw_node_line *next;
    int64_t rest[pw_line_words - 1];
} pw_node_line;

/* The timed code: follow `hops` links from `start`; returns where they end. */
pw_node_line *pw_node_chase(int64_t hops, pw_node_line *start);

/* The timed code: the sum, modulo 2^64, of all words of n lines. */
int64_t pw_node_sum(int64_t n, const pw_node_line *line);

/* Join n lines, a power of two, in one pseudo-random cycle that starts at the first, and fill their other words. */
void pw_node_join(int64_t n, pw_node_line *line);

/* How far, in lines, `at` lies from where `hops` hops along that cycle end. */
int64_t pw_node_deviation(int64_t n, const pw_node_line *line, int64_t hops, const pw_node_line *at);

/* What pw_node_sum must give for n lines, added up line by line. */
int64_t pw_node_expected(int64_t n, const pw_node_line *line);

/* Remember on which CPUs the process may run. Once, before pw_node_go. */
void pw_node_begin(void);

/* The nodes with CPUs, or with memory, as "0,1": a text of at most `length` characters with the null character. Node 0
 * alone where the kernel knows no nodes. */
void pw_node_list(int32_t with_memory, char *text, int32_t length);

/* Keep the calling thread on the CPUs of one node, and have its first touches placed on another. 0, the errno of what
 * failed, or -1 where the process may run on no CPU of the node. */
int32_t pw_node_go(int64_t cpu_node, int64_t memory_node);

/* Of the base pages of the first `bytes` bytes at `address`, those which are not on the node; -1 where the kernel does
 * not say. */
int64_t pw_node_misplaced(const char *address, int64_t bytes, int64_t node);

#endif
