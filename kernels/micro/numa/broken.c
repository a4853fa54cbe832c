/* One hop and one line fewer than requested: validation must detect it. */
#include "nodes.h"

pw_node_line *pw_node_chase(int64_t hops, pw_node_line *start)
{
    pw_node_line *p = start;
    for (int64_t i = 1; i < hops; i++) p = p->next;
    return p;
}

int64_t pw_node_sum(int64_t n, const pw_node_line *line)
{
    return pw_node_expected(n - 1, line);
}
