/* Two arrays of 24 MiB, a tree of 200,000 nodes, a mapping, and static objects of 8 MiB; prints a checksum, and for each the bytes
 * that are on huge pages. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 24 << 20, NODES = 200000, STATIC = 8 << 20 };
struct node {
    struct node *left, *right;
    uint64_t key, payload[4];
};
static char zeroed[STATIC], other_zeroed[STATIC];
static char filled[STATIC] = {1};

__attribute__((noinline)) static void *xmalloc(size_t bytes)
{
    void *got = malloc(bytes);
    if (!got) abort();
    return got;
}
__attribute__((noinline)) static char *first_array(void)
{
    char *got = xmalloc(BYTES);
    return memset(got, 1, BYTES);
}
__attribute__((noinline)) static char *second_array(void)
{
    char *got = xmalloc(BYTES);
    return memset(got, 2, BYTES);
}
__attribute__((noinline)) static char *mapping(void)
{
    char *got = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memset(got, 3, BYTES);
}
__attribute__((noinline)) static struct node *new_node(uint64_t key)
{
    struct node *node = calloc(1, sizeof *node);
    node->key = key;
    return node;
}

static struct node *tree(void)
{
    struct node *root = NULL;
    uint64_t key = 1;
    for (int number = 0; number < NODES; number++) {
        key = key * 6364136223846793005u + 1442695040888963407u;
        struct node **at = &root;
        while (*at) at = (*at)->key < key ? &(*at)->right : &(*at)->left;
        *at = new_node(key);
    }
    return root;
}

/* The bytes of huge pages in the mappings that overlap this memory. */
static long huge(const void *memory, size_t bytes)
{
    static char line[8192];
    FILE *smaps = fopen("/proc/self/smaps", "r");
    long sum = 0, kib;
    int inside = 0;
    uintptr_t from = (uintptr_t)memory, start, end;
    while (fgets(line, sizeof line, smaps)) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2 && strchr("0123456789abcdef", *line))
            inside = start < from + bytes && end > from;
        if (inside && sscanf(line, "AnonHugePages: %ld", &kib) == 1) sum += kib * 1024;
    }
    fclose(smaps);
    return sum;
}

int main(void)
{
    char *first = first_array(), *second = second_array(), *mapped = mapping();
    struct node *root = tree();
    memset(zeroed, 4, STATIC);
    memset(other_zeroed, 5, STATIC);
    memset(filled + 1, 6, STATIC - 1);
    uint64_t sum = root->key;
    for (int at = 0; at < BYTES; at += 4096) sum += (uint64_t)first[at] + (uint64_t)second[at] + (uint64_t)mapped[at];
    for (int at = 0; at < STATIC; at += 4096) sum += (uint64_t)zeroed[at] + (uint64_t)other_zeroed[at] + (uint64_t)filled[at];
    printf("{\"sum\": %lu, \"first_array\": %ld, \"second_array\": %ld, \"mapping\": %ld, \"new_node\": %ld, \"zeroed\": %ld, "
           "\"other_zeroed\": %ld, \"filled\": %ld}\n", sum, huge(first, BYTES), huge(second, BYTES), huge(mapped, BYTES),
           huge(root, sizeof *root), huge(zeroed, STATIC), huge(other_zeroed, STATIC), huge(filled, STATIC));
    free(first);
    free(second);
    return 0;
}
