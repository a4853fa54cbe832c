/* In C, since Fortran has no load of an address through an address: the index that it would use costs a cycle more. */
#include "chase.h"

pw_link *pw_chase(int64_t hops, pw_link *start)
{
    pw_link *p = start;
    for (; hops >= 8; hops -= 8) {
        p = p->next;
        p = p->next;
        p = p->next;
        p = p->next;
        p = p->next;
        p = p->next;
        p = p->next;
        p = p->next;
    }
    for (; hops > 0; hops--) p = p->next;
    return p;
}
