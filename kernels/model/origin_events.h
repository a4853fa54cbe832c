/* What the plug-in passes on to the origins (origins.h). */
#ifndef PAGEWISE_ORIGIN_EVENTS_H
#define PAGEWISE_ORIGIN_EVENTS_H

#include "plugin.h"

/* An access of this instruction missed (PW_MISSED_ of model.h). */
void origins_missed(struct thread *thread, struct site *site, uint64_t address, uint32_t missed);

/* What the preloaded library reports (origin_calls.h). */
void origins_reported(unsigned vcpu, uint64_t event, uint64_t address, uint64_t bytes, uint64_t stack);

/* The program is about to change its memory by this call, or any other; or has changed it. */
void origins_change(enum changing_call call, const uint64_t given[most_arguments]);
void origins_changed(enum changing_call call, const uint64_t given[most_arguments], uint64_t result);

#endif
