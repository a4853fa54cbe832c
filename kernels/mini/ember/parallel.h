/* Ranks, by MPI or for one rank without it. All calls are made by the thread that made the first one. */
#ifndef PAGEWISE_EMBER_PARALLEL_H
#define PAGEWISE_EMBER_PARALLEL_H

#include <stdint.h>

/* Whether this is MPI. */
int32_t ember_parallel_is_mpi(void);

/* Begin: the own rank, the number of ranks, and the own number among the ranks of this node. Returns 0, or 1 with the cause
   in `reason`, a text of at most `length` characters. */
int32_t ember_parallel_begin(int32_t *rank, int32_t *n_ranks, int32_t *local_rank, char *reason, int32_t length);

/* End; no effect if not begun. */
void ember_parallel_end(void);

/* Begin to send to, and to receive from, each rank the numbers of its count, none for the own rank; the parts are in
   the order of ranks. The buffers belong to the exchange until it is finished. */
void *ember_parallel_exchange_begin(
    const double *send, const int64_t *send_count, double *receive, const int64_t *receive_count);
void ember_parallel_exchange_finish(void *pending);

void ember_parallel_all_max(double *x);
void ember_parallel_all_min(double *x);

/* The count of each rank, in their order. */
void ember_parallel_gather_counts(int64_t mine, int64_t *counts);

/* Elements of 4 or 8 bytes: those of all ranks, as many as their counts, in the order of ranks. */
void ember_parallel_gather(const void *mine, void *all, const int64_t *counts, int32_t element_bytes);

void ember_parallel_broadcast(void *x, int64_t bytes, int32_t from);
void ember_parallel_send(int32_t to, const double *x, int64_t count);
void ember_parallel_receive(int32_t from, double *x, int64_t count);
void ember_parallel_barrier(void);

/* End all ranks at once, with this exit status. */
_Noreturn void ember_parallel_abort(int32_t code);

#endif
