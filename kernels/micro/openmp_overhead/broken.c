/* Without barriers, mutual exclusion, work sharing and the last round: validation must detect each. */
#define PW_BROKEN
#include "kernel.c"
