/* a(i) = s */
#define PW_ARRAYS 1
#define PW_READS 0
#define PW_ELEMENT(a, b, c, d, s) (s)
#include "pw_stream.h"
