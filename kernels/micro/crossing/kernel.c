/* In C, because Fortran arrays have no addresses inside an element. */
#include "crossing.h"
#include "pw_widths.h"

#include <string.h>

#define PW_TEMPLATE "accesses.h"
#define PW_TYPE word
#define PW_T uint64_t
#include "pw_each_width.h"

int32_t pw_crossing(int32_t access, int32_t simd, int64_t rounds, int64_t places, void *first, int64_t value, int64_t *total)
{
#define RUN(width) (pw_word_##width##_access(access, rounds, places, first, value, total), 0)
    PW_RETURN_OF_WIDTH(simd, RUN);
    return 1;
}
