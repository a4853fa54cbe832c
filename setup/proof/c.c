/* Prints the sum of the squares of 1..1000, written to an array and read back. */
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    const long n = 1000;
    double *a = malloc((size_t)n * sizeof *a), sum = 0;
    if (!a) return 1;
    for (long i = 0; i < n; i++) a[i] = (double)(i + 1) * (double)(i + 1);
    for (long i = 0; i < n; i++) sum += a[i];
    printf("%.0f\n", sum);
    free(a);
}
