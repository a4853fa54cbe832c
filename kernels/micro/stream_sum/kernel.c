/* total = total + a(i) */
#define PW_ARRAYS 1
#define PW_READS PW_A
#define PW_ELEMENT(a, b, c, d, s) (a)
#define PW_REDUCES
#include "pw_stream.h"
