/* Fills memory of malloc, and prints its environment and its memory as the kernel shows them. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 64 << 20 };

static void show(const char *name)
{
    char block[4096];
    FILE *file = fopen(name, "r");
    for (size_t got; file && (got = fread(block, 1, sizeof block, file)) > 0;) fwrite(block, 1, got, stdout);
    if (file) fclose(file);
}

int main(void)
{
    char *volatile memory = malloc(SIZE);
    if (!memory) return 1;
    memset(memory, 1, SIZE);
    show("/proc/self/environ");
    putchar('\n');
    show("/proc/self/smaps_rollup");
    /* Long enough for a sample of its memory, also on a busy machine. */
    poll(NULL, 0, 200);
    return memory[SIZE / 2] != 1;
}
