/* Prints how many of 2 threads took part, and the sum of the squares of 1..1000 that they computed. */
#include <omp.h>
#include <stdio.h>

int main(void)
{
    double sum = 0;
    int threads = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum, threads)
    {
        threads = 1;
#pragma omp for schedule(static)
        for (int i = 1; i <= 1000; i++) sum += (double)i * i;
    }
    printf("%d %.0f\n", threads, sum);
}
