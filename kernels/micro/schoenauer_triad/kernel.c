/* a(i) = b(i) + c(i)*d(i) */
#define PW_ARRAYS 4
#define PW_READS (PW_B | PW_C | PW_D)
#define PW_ELEMENT(a, b, c, d, s) ((b) + (c) * (d))
#include "pw_stream.h"
