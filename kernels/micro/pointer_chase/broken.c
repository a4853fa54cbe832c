/* A chase that makes one hop less than it was asked for: the check must find it. */
#include "chase.h"

pw_link *pw_chase(int64_t hops, pw_link *start)
{
    pw_link *p = start;
    for (int64_t i = 1; i < hops; i++) p = p->next;
    return p;
}
