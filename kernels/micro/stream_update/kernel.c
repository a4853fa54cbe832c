/* a(i) = -a(i) */
#define PW_ARRAYS 1
#define PW_READS PW_A
#define PW_ELEMENT(a, b, c, d, s) (-(a))
#include "pw_stream.h"
