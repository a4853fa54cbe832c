/* One hop and one line fewer than requested; or the first half of a thread's lines twice. Validation must detect each. */
#include "nodes.h"
#include "pw_broken.h"

pw_node_line *pw_node_chase(int64_t hops, pw_node_line *start)
{
    pw_node_line *p = start;
    for (int64_t i = 1; i < hops; i++) p = p->next;
    return p;
}

int64_t pw_node_sum(const pw_node_line *line, int64_t first, int64_t last)
{
    const int repeats = pw_broken_is("repeat");
    uint64_t sum = 0;
    if (repeats) last = first + (last - first + 1) / 2 - 1;
    for (int64_t i = first; i <= last - !repeats; i++) {
        sum += (uintptr_t)line[i - 1].next;
        for (int k = 0; k < PW_LINE_WORDS - 1; k++) sum += (uint64_t)line[i - 1].rest[k];
    }
    return (int64_t)(repeats ? 2 * sum : sum);
}
