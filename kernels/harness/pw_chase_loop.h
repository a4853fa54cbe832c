/* The timed loop of a chase. In C, because Fortran cannot load an address through an address: the index that it would use costs
 * one more cycle. PW_CHASE(n) defines chase_<n>: follow `hops` links of each of n chains concurrently; at[] holds their starts,
 * then their ends. One function per number of chains, so that each chain keeps its position in a register. */
#ifndef PAGEWISE_CHASE_LOOP_H
#define PAGEWISE_CHASE_LOOP_H

#include "pw_chase.h"

#define PW_CHAINS_1(X) X(0)
#define PW_CHAINS_2(X) PW_CHAINS_1(X) X(1)
#define PW_CHAINS_3(X) PW_CHAINS_2(X) X(2)
#define PW_CHAINS_4(X) PW_CHAINS_3(X) X(3)
#define PW_CHAINS_5(X) PW_CHAINS_4(X) X(4)
#define PW_CHAINS_6(X) PW_CHAINS_5(X) X(5)
#define PW_CHAINS_7(X) PW_CHAINS_6(X) X(6)
#define PW_CHAINS_8(X) PW_CHAINS_7(X) X(7)
#define PW_CHAINS_9(X) PW_CHAINS_8(X) X(8)
#define PW_CHAINS_10(X) PW_CHAINS_9(X) X(9)
#define PW_CHAINS_11(X) PW_CHAINS_10(X) X(10)
#define PW_CHAINS_12(X) PW_CHAINS_11(X) X(11)
#define PW_CHAINS_13(X) PW_CHAINS_12(X) X(12)
#define PW_CHAINS_14(X) PW_CHAINS_13(X) X(13)
#define PW_CHAINS_15(X) PW_CHAINS_14(X) X(14)
#define PW_CHAINS_16(X) PW_CHAINS_15(X) X(15)

#define PW_START(c) pw_link *p##c = at[c];
#define PW_FOLLOW(c) p##c = p##c->next;
#define PW_END(c) at[c] = p##c;

#define PW_CHASE(chains)                                                          \
    static void chase_##chains(int64_t hops, pw_link **at)                        \
    {                                                                             \
        PW_CHAINS_##chains(PW_START)                                              \
        for (; hops >= 8; hops -= 8) {                                            \
            PW_CHAINS_##chains(PW_FOLLOW) PW_CHAINS_##chains(PW_FOLLOW)           \
            PW_CHAINS_##chains(PW_FOLLOW) PW_CHAINS_##chains(PW_FOLLOW)           \
            PW_CHAINS_##chains(PW_FOLLOW) PW_CHAINS_##chains(PW_FOLLOW)           \
            PW_CHAINS_##chains(PW_FOLLOW) PW_CHAINS_##chains(PW_FOLLOW)           \
        }                                                                         \
        for (; hops > 0; hops--) { PW_CHAINS_##chains(PW_FOLLOW) }                \
        PW_CHAINS_##chains(PW_END)                                                \
    }

#endif
