/* a(i) = a(i) + s*b(i) */
#define PW_ARRAYS 2
#define PW_READS (PW_A | PW_B)
#define PW_ELEMENT(a, b, c, d, s) ((a) + (s) * (b))
#define PW_FLIPS
#include "pw_stream.h"
