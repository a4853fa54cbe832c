#include "parallel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int32_t ember_parallel_is_mpi(void)
{
    return 0;
}

int32_t ember_parallel_begin(int32_t *rank, int32_t *n_ranks, int32_t *local_rank, char *reason, int32_t length)
{
    (void)reason;
    (void)length;
    *rank = 0;
    *n_ranks = 1;
    *local_rank = 0;
    return 0;
}

void ember_parallel_end(void)
{
}

void *ember_parallel_exchange_begin(
    const double *send, const int64_t *send_count, double *receive, const int64_t *receive_count)
{
    (void)send;
    (void)send_count;
    (void)receive;
    (void)receive_count;
    return NULL;
}

void ember_parallel_exchange_finish(void *pending)
{
    (void)pending;
}

void ember_parallel_all_max(double *x)
{
    (void)x;
}

void ember_parallel_all_min(double *x)
{
    (void)x;
}

void ember_parallel_gather_counts(int64_t mine, int64_t *counts)
{
    counts[0] = mine;
}

void ember_parallel_gather(const void *mine, void *all, const int64_t *counts, int32_t element_bytes)
{
    memcpy(all, mine, (size_t)counts[0] * (size_t)element_bytes);
}

void ember_parallel_broadcast(void *x, int64_t bytes, int32_t from)
{
    (void)x;
    (void)bytes;
    (void)from;
}

/* No other rank exists. */
static _Noreturn void alone(const char *label, int32_t other)
{
    fprintf(stderr, "ember: %s rank %d in a build without MPI\n", label, (int)other);
    abort();
}

void ember_parallel_send(int32_t to, const double *x, int64_t count)
{
    (void)x;
    (void)count;
    alone("a message to", to);
}

void ember_parallel_receive(int32_t from, double *x, int64_t count)
{
    (void)x;
    (void)count;
    alone("a message from", from);
}

void ember_parallel_barrier(void)
{
}

void ember_parallel_abort(int32_t code)
{
    exit(code);
}
