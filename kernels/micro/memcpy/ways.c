/* The copy methods that this processor supports. */
#include "copy.h"

int32_t pw_copy_has_string_move(void)
{
#if defined(__x86_64__)
    return 1;
#else
    return 0;
#endif
}
