/* Expectations of tests: each fault is printed, and the program continues. */
#ifndef PAGEWISE_EXPECT_H
#define PAGEWISE_EXPECT_H

#include <stdio.h>

static int faults;

#define EXPECT(condition)                                                                                                       \
    do {                                                                                                                        \
        if (!(condition)) {                                                                                                     \
            printf("line %d: false: %s\n", __LINE__, #condition);                                                              \
            faults++;                                                                                                           \
        }                                                                                                                       \
    } while (0)

/* The exit code of the program. */
static int reported_faults(void)
{
    if (faults > 0) printf("%d fault(s)\n", faults);
    return faults > 0;
}

#endif
