/* What the preloaded libraries ask each other: selected.c answers the first ones, report.c the last. NULL if the other library
 * is not preloaded. */
#pragma once
#include "here.h"

#include <stddef.h>
#include <stdint.h>

#define ASKED __attribute__((weak, visibility("default")))

/* Of the selected memory. bytes: the most that were allocated at one time, with static objects. is_loaded: whether any of the
 * selection's files is in this process. */
struct selected_memory {
    uint64_t bytes;
    int is_loaded;
};

/* Whether the allocation is selected that the function makes whose return address is at this place on the stack. */
ASKED extern int pagewise_is_selected(const uintptr_t *slot);
/* Calls `move` for the selected static objects that the program's file initialises. */
ASKED extern void pagewise_each_data(void (*move)(uintptr_t from, uintptr_t to));
ASKED extern struct selected_memory pagewise_selected_memory(void);
/* Before so much memory is given back. */
ASKED extern void pagewise_before_release(size_t bytes);
