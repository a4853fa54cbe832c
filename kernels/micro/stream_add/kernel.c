/* a(i) = b(i) + c(i) */
#define PW_ARRAYS 3
#define PW_READS (PW_B | PW_C)
#define PW_ELEMENT(a, b, c, d, s) ((b) + (c))
#include "pw_stream.h"
