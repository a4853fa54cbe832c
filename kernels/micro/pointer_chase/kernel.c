/* One function per number of chains. */
#include "chase.h"
#include "pw_chase_loop.h"

PW_CHASE(1)
PW_CHASE(2)
PW_CHASE(3)
PW_CHASE(4)
PW_CHASE(5)
PW_CHASE(6)
PW_CHASE(7)
PW_CHASE(8)
PW_CHASE(9)
PW_CHASE(10)
PW_CHASE(11)
PW_CHASE(12)
PW_CHASE(13)
PW_CHASE(14)
PW_CHASE(15)
PW_CHASE(16)

void pw_chase(int64_t hops, int64_t chains, pw_link **at)
{
    static void (*const chase[pw_most_chains])(int64_t, pw_link **) = {
        chase_1, chase_2,  chase_3,  chase_4,  chase_5,  chase_6,  chase_7,  chase_8,
        chase_9, chase_10, chase_11, chase_12, chase_13, chase_14, chase_15, chase_16,
    };
    chase[chains - 1](hops, at);
}
