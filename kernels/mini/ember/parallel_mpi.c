#include "parallel.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MPI counts in int: longer messages are split into pieces of this many elements, which arrive in order. */
#ifndef EMBER_PIECE
#define EMBER_PIECE (1 << 30)
#endif

enum { tag_exchange = 1, tag_message = 2 };

static int rank_of_this(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

static int number_of_ranks(void)
{
    int n;
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    return n;
}

static int piece_of(int64_t count)
{
    return count < EMBER_PIECE ? (int)count : EMBER_PIECE;
}

static void *memory(size_t bytes)
{
    void *p = malloc(bytes > 0 ? bytes : 1);
    if (!p) {
        fprintf(stderr, "ember: cannot allocate %zu bytes for message lists\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    return p;
}

int32_t ember_parallel_is_mpi(void)
{
    return 1;
}

int32_t ember_parallel_begin(int32_t *rank, int32_t *n_ranks, int32_t *local_rank, char *reason, int32_t length)
{
    int provided = MPI_THREAD_SINGLE, local = 0;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
        snprintf(reason, (size_t)length, "MPI failed to start");
        return 1;
    }
    *rank = rank_of_this();
    *n_ranks = number_of_ranks();
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, *rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local);
    MPI_Comm_free(&node);
    *local_rank = local;
    if (provided < MPI_THREAD_FUNNELED) {
        snprintf(reason, (size_t)length, "this MPI library does not support MPI_THREAD_FUNNELED");
        return 1;
    }
    return 0;
}

/* Whether MPI was started and has not ended. */
static int is_running(void)
{
    int started = 0, ended = 0;
    MPI_Initialized(&started);
    MPI_Finalized(&ended);
    return started && !ended;
}

void ember_parallel_end(void)
{
    if (is_running())
        MPI_Finalize();
}

struct exchange {
    int n_requests;
    MPI_Request requests[];
};

/* The number of messages to or from the other ranks. */
static int64_t pieces_of(const int64_t *count, int n_ranks)
{
    int64_t pieces = 0;
    for (int i = 0; i < n_ranks; i++)
        pieces += (count[i] + EMBER_PIECE - 1) / EMBER_PIECE;
    return pieces;
}

void *ember_parallel_exchange_begin(
    const double *send, const int64_t *send_count, double *receive, const int64_t *receive_count)
{
    const int n_ranks = number_of_ranks();
    const int64_t pieces = pieces_of(send_count, n_ranks) + pieces_of(receive_count, n_ranks);
    struct exchange *exchange = memory(sizeof *exchange + (size_t)pieces * sizeof exchange->requests[0]);
    MPI_Request *next = exchange->requests;
    /* Receives first, so that arriving messages have a buffer. */
    for (int i = 0; i < n_ranks; i++)
        for (int64_t left = receive_count[i]; left > 0;) {
            const int piece = piece_of(left);
            MPI_Irecv(receive, piece, MPI_DOUBLE, i, tag_exchange, MPI_COMM_WORLD, next++);
            receive += piece;
            left -= piece;
        }
    for (int i = 0; i < n_ranks; i++)
        for (int64_t left = send_count[i]; left > 0;) {
            const int piece = piece_of(left);
            MPI_Isend(send, piece, MPI_DOUBLE, i, tag_exchange, MPI_COMM_WORLD, next++);
            send += piece;
            left -= piece;
        }
    exchange->n_requests = (int)(next - exchange->requests);
    return exchange;
}

void ember_parallel_exchange_finish(void *pending)
{
    struct exchange *exchange = pending;
    if (!exchange)
        return;
    MPI_Waitall(exchange->n_requests, exchange->requests, MPI_STATUSES_IGNORE);
    free(exchange);
}

void ember_parallel_all_max(double *x)
{
    MPI_Allreduce(MPI_IN_PLACE, x, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

void ember_parallel_all_min(double *x)
{
    MPI_Allreduce(MPI_IN_PLACE, x, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
}

void ember_parallel_gather_counts(int64_t mine, int64_t *counts)
{
    MPI_Allgather(&mine, 1, MPI_INT64_T, counts, 1, MPI_INT64_T, MPI_COMM_WORLD);
}

static void broadcast(char *x, int64_t count, MPI_Datatype type, int32_t element_bytes, int from)
{
    while (count > 0) {
        const int piece = piece_of(count);
        MPI_Bcast(x, piece, type, from, MPI_COMM_WORLD);
        x += (int64_t)piece * element_bytes;
        count -= piece;
    }
}

void ember_parallel_gather(const void *mine, void *all, const int64_t *counts, int32_t element_bytes)
{
    const MPI_Datatype type = element_bytes == 8 ? MPI_INT64_T : MPI_INT32_T;
    const int n_ranks = number_of_ranks(), rank = rank_of_this();
    int64_t total = 0;
    for (int i = 0; i < n_ranks; i++)
        total += counts[i];
    if (total <= EMBER_PIECE) {
        int *count = memory(2 * (size_t)n_ranks * sizeof *count), *begin = count + n_ranks;
        for (int i = 0, at = 0; i < n_ranks; i++) {
            count[i] = (int)counts[i];
            begin[i] = at;
            at += count[i];
        }
        MPI_Allgatherv(mine, count[rank], type, all, count, begin, type, MPI_COMM_WORLD);
        free(count);
        return;
    }
    char *part = all;
    for (int i = 0; i < n_ranks; i++) {
        if (i == rank)
            memcpy(part, mine, (size_t)counts[i] * (size_t)element_bytes);
        broadcast(part, counts[i], type, element_bytes, i);
        part += counts[i] * element_bytes;
    }
}

void ember_parallel_broadcast(void *x, int64_t bytes, int32_t from)
{
    broadcast(x, bytes, MPI_BYTE, 1, from);
}

void ember_parallel_send(int32_t to, const double *x, int64_t count)
{
    while (count > 0) {
        const int piece = piece_of(count);
        MPI_Send(x, piece, MPI_DOUBLE, to, tag_message, MPI_COMM_WORLD);
        x += piece;
        count -= piece;
    }
}

void ember_parallel_receive(int32_t from, double *x, int64_t count)
{
    while (count > 0) {
        const int piece = piece_of(count);
        MPI_Recv(x, piece, MPI_DOUBLE, from, tag_message, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        x += piece;
        count -= piece;
    }
}

void ember_parallel_barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

void ember_parallel_abort(int32_t code)
{
    fflush(NULL);
    if (is_running())
        MPI_Abort(MPI_COMM_WORLD, code);
    exit(code);
}
