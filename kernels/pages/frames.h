/* The sizes of the pages behind a range of addresses, by the flags of their page frames. Private to kernels/pages. */
#ifndef PAGEWISE_PAGES_FRAMES_H
#define PAGEWISE_PAGES_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

enum { PW_FRAMES_ORDERS = 32 };

struct pw_frames {
    int64_t whole_bytes;                /* on pages of exactly the requested size, each mapped completely and aligned */
    int64_t by_order[PW_FRAMES_ORDERS]; /* bytes of the range on pages of 2^order base pages */
};

/* Count [start, end), whole pages of `page_size`; no page is larger than `largest`. False: only root may read the flags
   (/proc/self/pagemap, /proc/kpageflags), or the kernel does not provide them. */
bool pw_frames_count(uintptr_t start, uintptr_t end, int64_t page_size, int64_t largest, struct pw_frames *frames);

#endif
