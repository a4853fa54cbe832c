/* Making and checking the lines. */
#include "nodes.h"

enum { filling = 3 };

void pw_node_join(int64_t n, pw_node_line *line)
{
    uint64_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        line[i].next = &line[i];
        for (int k = 0; k < pw_line_words - 2; k++) line[i].rest[k] = filling;
    }
    /* Sattolo's shuffle (1986): the result is always one cycle. Random numbers by Knuth's MMIX generator. */
    for (int64_t i = n - 1; i > 0; i--) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int64_t k = (int64_t)((state >> 24) % (uint64_t)i);
        pw_node_line *swapped = line[i].next;
        line[i].next = line[k].next;
        line[k].next = swapped;
    }
    pw_node_line *p = line;
    for (int64_t i = 0; i < n; i++, p = p->next) p->place = i;
}

int64_t pw_node_expected(int64_t first, int64_t last, const pw_node_line *line)
{
    uint64_t sum = 0;
    for (int64_t i = first; i < last; i++)
        sum += (uint64_t)(uintptr_t)line[i].next + (uint64_t)line[i].place + filling * (pw_line_words - 2);
    return (int64_t)sum;
}

int64_t pw_node_place(const pw_node_line *line)
{
    return line->place;
}
