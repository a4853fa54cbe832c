/* A chase with one hop fewer than requested: validation must detect it. */
#include "chase.h"

void pw_chase(int64_t hops, int64_t chains, pw_link **at)
{
    for (int64_t chain = 0; chain < chains; chain++)
        for (int64_t i = 1; i < hops; i++) at[chain] = at[chain]->next;
}
