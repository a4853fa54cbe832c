/* a(i) = b(i) + s*c(i) */
#define PW_ARRAYS 3
#define PW_READS (PW_B | PW_C)
#define PW_ELEMENT(a, b, c, d, s) ((b) + (s) * (c))
#include "pw_stream.h"
