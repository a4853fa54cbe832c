/* Where the return address of the current function is on the stack (x86-64, aarch64). */
#ifndef PAGEWISE_HERE_H
#define PAGEWISE_HERE_H

#include <stdint.h>

#define HERE ((const uintptr_t *)__builtin_frame_address(0) + 1)

#endif
