/* The large array of programs that measure static arrays (.bss). Only they are linked with it: a system that does not
 * overcommit memory (vm.overcommit_memory=2) counts all of it. It costs nothing else until it is touched; the code models of
 * x86-64 allow 2 GiB in total. */
#include "pages.h"

char pw_static_memory[(int64_t)PW_STATIC_MIB << 20];
const int64_t pw_static_memory_bytes = sizeof pw_static_memory;
