/* In C, because Fortran cannot load an address through an address: the index that it would use costs one more cycle.
 * One function per number of chains, so that each chain keeps its position in a register. */
#include "chase.h"

#define CHAINS_1(X) X(0)
#define CHAINS_2(X) CHAINS_1(X) X(1)
#define CHAINS_3(X) CHAINS_2(X) X(2)
#define CHAINS_4(X) CHAINS_3(X) X(3)
#define CHAINS_5(X) CHAINS_4(X) X(4)
#define CHAINS_6(X) CHAINS_5(X) X(5)
#define CHAINS_7(X) CHAINS_6(X) X(6)
#define CHAINS_8(X) CHAINS_7(X) X(7)
#define CHAINS_9(X) CHAINS_8(X) X(8)
#define CHAINS_10(X) CHAINS_9(X) X(9)
#define CHAINS_11(X) CHAINS_10(X) X(10)
#define CHAINS_12(X) CHAINS_11(X) X(11)
#define CHAINS_13(X) CHAINS_12(X) X(12)
#define CHAINS_14(X) CHAINS_13(X) X(13)
#define CHAINS_15(X) CHAINS_14(X) X(14)
#define CHAINS_16(X) CHAINS_15(X) X(15)

#define START(c) pw_link *p##c = at[c];
#define FOLLOW(c) p##c = p##c->next;
#define END(c) at[c] = p##c;

#define CHASE(chains)                                                                      \
    static void chase_##chains(int64_t hops, pw_link **at)                                 \
    {                                                                                      \
        CHAINS_##chains(START)                                                             \
        for (; hops >= 8; hops -= 8) {                                                     \
            CHAINS_##chains(FOLLOW) CHAINS_##chains(FOLLOW) CHAINS_##chains(FOLLOW)        \
            CHAINS_##chains(FOLLOW) CHAINS_##chains(FOLLOW) CHAINS_##chains(FOLLOW)        \
            CHAINS_##chains(FOLLOW) CHAINS_##chains(FOLLOW)                                \
        }                                                                                  \
        for (; hops > 0; hops--) { CHAINS_##chains(FOLLOW) }                               \
        CHAINS_##chains(END)                                                               \
    }

CHASE(1)
CHASE(2)
CHASE(3)
CHASE(4)
CHASE(5)
CHASE(6)
CHASE(7)
CHASE(8)
CHASE(9)
CHASE(10)
CHASE(11)
CHASE(12)
CHASE(13)
CHASE(14)
CHASE(15)
CHASE(16)

void pw_chase(int64_t hops, int64_t chains, pw_link **at)
{
    static void (*const chase[pw_most_chains])(int64_t, pw_link **) = {
        chase_1, chase_2,  chase_3,  chase_4,  chase_5,  chase_6,  chase_7,  chase_8,
        chase_9, chase_10, chase_11, chase_12, chase_13, chase_14, chase_15, chase_16,
    };
    chase[chains - 1](hops, at);
}
