/* How glibc treats freed memory; see mallopt(3). */
#include "heap.h"

#if defined(__linux__)
#include <malloc.h>
#endif

int32_t pw_heap_reuse(int64_t way)
{
    if (way == pw_heap_glibc) return 0;
#if defined(__GLIBC__)
    /* Each of these calls stops glibc's dynamic adjustment of the threshold. Mappings are released at free; so is the end
       of the heap, from the threshold on. */
    enum { threshold = 128 * 1024, never = -1 };
    if (way == pw_heap_return) {
        int done = mallopt(M_MMAP_MAX, 65536) & mallopt(M_MMAP_THRESHOLD, threshold);
        return (done & mallopt(M_TRIM_THRESHOLD, threshold)) ? 0 : 1;
    }
    return (mallopt(M_MMAP_MAX, 0) & mallopt(M_TRIM_THRESHOLD, never)) ? 0 : 1;
#else
    return 1;
#endif
}
