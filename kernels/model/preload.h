/* The parts of the preloaded library: reports of memory (preload.c), and samples (sampler.c). */
#ifndef PAGEWISE_PRELOAD_H
#define PAGEWISE_PRELOAD_H

#include "origin_calls.h"

#include <stdbool.h>
#include <stddef.h>

#define EXPORTED __attribute__((visibility("default")))

/* This thread works for the library, whose own work allocates. */
extern __thread bool pw_busy __attribute__((tls_model("initial-exec")));

/* Report to the plug-in, or to the sampler where that has started. */
void pw_report(enum pw_origin_event event, int frames, const void *address, size_t bytes, const void *stack);

#endif
