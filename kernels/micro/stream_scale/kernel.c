/* a(i) = s*b(i) */
#define PW_ARRAYS 2
#define PW_READS PW_B
#define PW_ELEMENT(a, b, c, d, s) ((s) * (b))
#include "pw_stream.h"
