/* An MPI program as a user has one: each rank fills memory, and reports its rank.
   ranks [MIB] [wrong|dies]: with `wrong`, rank 1 refuses huge pages where no library
   notices it; with `dies`, it ends with exit code 7. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 32) << 20;
    const char *way = argc > 2 ? argv[2] : "";
    if (rank == 1 && strcmp(way, "dies") == 0) exit(7);
    if (rank == 1 && strcmp(way, "wrong") == 0) syscall(SYS_prctl, PR_SET_THP_DISABLE, 1, 0, 0, 0);
    char *memory = malloc(bytes);
    if (memory == NULL) return 1;
    for (int pass = 0; pass < 8; pass++) {
        memset(memory, pass + rank, bytes);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    int sum = 0, mine = memory[bytes / 2] == 7 + rank;
    MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("right: %d of %d\n", sum, ranks);
    free(memory);
    MPI_Finalize();
    return 0;
}
