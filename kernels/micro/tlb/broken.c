/* A chase with one hop fewer than requested: validation must detect it. */
#include "measure.h"

pw_tlb_link *pw_tlb_chase(int64_t hops, pw_tlb_link *at)
{
    for (int64_t i = 1; i < hops; i++) at = at->next;
    return at;
}
