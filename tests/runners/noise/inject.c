/* Programs that do EXTRA per cent more work: a comparison must find this difference, in its size.

       gcc -O2 -o inject tests/runners/noise/inject.c
       pagewise compare --policies none --method turns --rounds 16 --vary EXTRA=0,0.0,0.5,1,2,4 -- ./inject compute

   compute: arithmetic in registers. chase: a list of 96 MiB in random order. triad: three arrays of 32 MiB.
   updates: random words of 64 MiB. The preparation of memory is not repeated. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t next(void)
{
    static uint64_t state = 88172645463325252U;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void *memory(size_t bytes)
{
    void *block = malloc(bytes);
    if (block == NULL) exit(1);
    return block;
}

static double compute(double work)
{
    double x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (uint64_t left = (uint64_t)(1.2e8 * work); left > 0; left--)
        for (int i = 0; i < 8; i++) x[i] = x[i] * 0.999999 + 1e-9;
    return x[0] + x[1] + x[2] + x[3] + x[4] + x[5] + x[6] + x[7];
}

static double chase(double work)
{
    enum { lines = (96 << 20) / 64, words = 8 };
    uint64_t *list = memory((size_t)lines * words * sizeof *list), at = 0;
    uint32_t *order = memory(lines * sizeof *order);
    for (uint32_t i = 0; i < lines; i++) order[i] = i;
    for (uint32_t i = lines - 1; i > 0; i--) {
        const uint32_t j = (uint32_t)(next() % (i + 1)), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    for (uint32_t i = 0; i < lines; i++) list[(size_t)order[i] * words] = (uint64_t)order[(i + 1) % lines] * words;
    free(order);
    for (uint64_t left = (uint64_t)(5e6 * work); left > 0; left--) at = list[at];
    return (double)at;
}

static double triad(double work)
{
    enum { values = (32 << 20) / 8 };
    double *a = memory(values * sizeof *a), *b = memory(values * sizeof *b), *c = memory(values * sizeof *c);
    for (size_t i = 0; i < values; i++) {
        a[i] = 1;
        b[i] = (double)i;
        c[i] = 2;
    }
    for (double left = 150 * work; left > 0; left--) {
        const size_t end = left < 1 ? (size_t)(left * values) : values;
        for (size_t i = 0; i < end; i++) a[i] = b[i] + c[i] * left;
    }
    return a[5];
}

static double updates(double work)
{
    enum { values = 1 << 23 };
    uint64_t *table = memory(values * sizeof *table);
    memset(table, 1, values * sizeof *table);
    for (uint64_t left = (uint64_t)(3e7 * work); left > 0; left--) {
        const uint64_t word = next();
        table[word % values] ^= word;
    }
    return (double)table[77];
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        double (*run)(double work);
    } programs[] = {{"compute", compute}, {"chase", chase}, {"triad", triad}, {"updates", updates}};
    const char *extra = getenv("EXTRA");
    for (size_t i = 0; count == 2 && i < sizeof programs / sizeof *programs; i++)
        if (strcmp(words[1], programs[i].name) == 0)
            return printf("%g\n", programs[i].run(1 + (extra == NULL ? 0 : atof(extra)) / 100)) < 0;
    fputs("error: name a program\n", stderr);
    return 2;
}
