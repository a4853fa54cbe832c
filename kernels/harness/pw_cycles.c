/* Integer additions, each of the result of the previous one: one per cycle on x86-64 and on AArch64. Both operands are
 * registers, because Intel's processors from Golden Cove on fold additions of constants before they execute them. */
#include "processor.h"

enum { additions = 200 };

int64_t pw_cycles_pass(int64_t n)
{
#if defined(__x86_64__) || defined(__aarch64__)
    uint64_t sum = 0, one = 1;
    int64_t cycles = 0;
    for (; cycles < n; cycles += additions)
#if defined(__x86_64__)
        __asm__ volatile(".rept 200\n\tadd %1, %0\n\t.endr" : "+r"(sum) : "r"(one) : "cc");
#else
        __asm__ volatile(".rept 200\n\tadd %0, %0, %1\n\t.endr" : "+r"(sum) : "r"(one));
#endif
    return sum == (uint64_t)cycles ? cycles : 0;
#else
    (void)n;
    return 0; /* POWER's additions take more than one cycle, depending on the generation */
#endif
}
