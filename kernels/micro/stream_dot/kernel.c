/* total = total + a(i)*b(i) */
#define PW_ARRAYS 2
#define PW_READS (PW_A | PW_B)
#define PW_ELEMENT(a, b, c, d, s) ((a) * (b))
#define PW_REDUCES
#include "pw_stream.h"
