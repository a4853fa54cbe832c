/* See marks.h. */
#include "marks.h"

#include <stddef.h>

/* One per thread: a store of another thread must not come between length and name. Marked used, because the compiler does
   not see the reader of the magic number. */
__attribute__((used)) static _Thread_local struct pw_mark mark = {.magic = PW_MARK_MAGIC};

/* noinline: a tracer locates the functions by their symbols. */
__attribute__((noinline)) void pw_mark_begin(const char *name, int32_t length)
{
    mark.length = length;
    mark.name = name;
}

__attribute__((noinline)) void pw_mark_end(void)
{
    mark.name = NULL;
}

__attribute__((noinline)) void pw_mark_array(const char *name, int32_t length, const void *array, int64_t bytes)
{
    mark.array = array;
    mark.bytes = bytes;
    mark.length = length;
    mark.name = name;
}
