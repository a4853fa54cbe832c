/* Latency from dependent loads, bandwidth from independent loads. */
#include "nodes.h"

pw_node_line *pw_node_chase(int64_t hops, pw_node_line *start)
{
    pw_node_line *p = start;
    for (; hops >= 4; hops -= 4) {
        p = p->next;
        p = p->next;
        p = p->next;
        p = p->next;
    }
    for (; hops > 0; hops--) p = p->next;
    return p;
}

int64_t pw_node_sum(const pw_node_line *line, int64_t first, int64_t last)
{
    const uint64_t *word = (const uint64_t *)(const void *)(line + first - 1);
    const int64_t words = (last - first + 1) * PW_LINE_WORDS;
    uint64_t sum = 0;
    for (int64_t i = 0; i < words; i++) sum += word[i];
    return (int64_t)sum;
}
