/* Prints the sum of the squares of 1..1000, reduced over all ranks; run it with one rank. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    double mine = 0, sum = 0;
    MPI_Init(&argc, &argv);
    for (int i = 1; i <= 1000; i++) mine += (double)i * (double)i;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    printf("%.0f\n", sum);
    MPI_Finalize();
}
