/* The preloaded library (remap.c) with a pool of base pages: its calls, where no huge page is reserved. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/shm.h>
#undef MAP_HUGETLB
#define MAP_HUGETLB 0
#undef SHM_HUGETLB
#define SHM_HUGETLB 0
#include "remap.c"
