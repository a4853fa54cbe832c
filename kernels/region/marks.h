/* Marks for a tracer that runs the program, such as kernels/model: they show where a region begins and ends. Without
   a tracer they cost two or three stores. */
#ifndef PAGEWISE_MARKS_H
#define PAGEWISE_MARKS_H

#include <stdint.h>

#define PW_MARK_MAGIC UINT64_C(0x70772d6d61726b31)

/* The target of the marks' stores. A tracer recognises a mark by a store to `name` in the function of this file, with the
   magic number before it. */
struct pw_mark {
    uint64_t magic;
    const char *volatile name; /* NULL at the end of a region */
    volatile int64_t length;   /* of the name, in characters; stored before it */
    const void *volatile array; /* pw_mark_array: its memory, and the bytes of it; stored before the name */
    volatile int64_t bytes;
};

/* The calling thread enters the region, or leaves the one that it entered last. */
void pw_mark_begin(const char *name, int32_t length);
void pw_mark_end(void);

/* An array of this name starts at this address. */
void pw_mark_array(const char *name, int32_t length, const void *array, int64_t bytes);

#endif
