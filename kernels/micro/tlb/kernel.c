/* In C, because Fortran cannot load an address through an address. */
#include "measure.h"

pw_tlb_link *pw_tlb_chase(int64_t hops, pw_tlb_link *at)
{
    for (; hops >= 8; hops -= 8) at = at->next->next->next->next->next->next->next->next;
    for (; hops > 0; hops--) at = at->next;
    return at;
}
