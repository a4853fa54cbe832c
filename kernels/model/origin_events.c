/* See origin_events.h. */
#define _GNU_SOURCE
#include "origin_events.h"

#include "origin_calls.h"
#include "origins.h"

#include <sys/mman.h>

/* How an instruction found the address that missed. The lines of the last misses are kept: an address in one of them, or less than a
   page before the new one, was loaded from there. */
static enum pw_pattern pattern_of(struct thread *thread, struct site *site, uint64_t address)
{
    const unsigned shift = thread->model->page_shift[PW_BASE];
    const uint64_t page = address >> shift;
    uint64_t *last = &site->last_miss[(thread - trace.thread) % instruction_threads];
    const bool adjacent = page - *last == 1 || *last - page == 1;
    *last = page;
    if (adjacent) return PW_ADJACENT;
    bool dependent = false;
    for (int i = 0; i < loaded_lines; i++)
        for (int k = 0; k < loaded_words; k++) dependent |= (address - thread->loaded[i][k]) >> shift == 0;
    uint64_t *loaded = thread->loaded[thread->last_loaded++ % loaded_lines];
    const uint64_t line = address & ~(uint64_t)(sizeof thread->loaded[0] - 1);
    memcpy(loaded, (const void *)(uintptr_t)line, sizeof thread->loaded[0]);
    return dependent ? PW_DEPENDENT : PW_INDEPENDENT;
}

void origins_missed(struct thread *thread, struct site *site, uint64_t address, uint32_t missed)
{
    const bool counted = (missed & PW_MISSED_TLB) != 0 || missed >> PW_DISTANCE_SHIFT > 0;
    struct pw_model *model = thread->model;
    const enum pw_pattern pattern = counted ? pattern_of(thread, site, address) : PW_INDEPENDENT;
    const uint64_t page = model->geometry.page[pw_mapping_class(&model->mapping, address)];
    if (trace.parallel) pthread_mutex_lock(&trace.lock);
    pw_origins_missed(address, missed, pattern, page);
    if (trace.parallel) pthread_mutex_unlock(&trace.lock);
}

void origins_reported(unsigned vcpu, uint64_t event, uint64_t address, uint64_t bytes, uint64_t stack)
{
    uint64_t frames[PW_ORIGIN_FRAMES];
    const uint64_t n_frames = event >> 8;
    struct thread *thread = thread_of(vcpu);
    switch ((enum pw_origin_event)(event & 0xff)) {
    case PW_ORIGIN_HELLO:
        *(volatile int *)(uintptr_t)address = 1;
        trace.library_begin = bytes;
        trace.library_end = stack;
        /* Those that were translated before. */
        for (struct site *site = trace.sites; site != NULL; site = site->next)
            if (bytes <= site->place && site->place < stack) site->kind = not_of_program;
        pw_origins_reported();
        break;
    case PW_ORIGIN_BEGIN:
    case PW_ORIGIN_RESERVE:
        if (n_frames <= PW_ORIGIN_FRAMES && read_guest(stack, frames, n_frames * sizeof *frames))
            pw_origins_begin(address, bytes, frames, (int)n_frames, (event & 0xff) == PW_ORIGIN_BEGIN);
        break;
    case PW_ORIGIN_END: pw_origins_end(address, bytes); break;
    case PW_ORIGIN_PAUSE:
        if (thread == NULL) break;
        thread->paused = true;
        thread->paused_at = trace.executed;
        break;
    case PW_ORIGIN_RESUME:
        if (thread == NULL) break;
        thread->paused = false;
        if (!trace.parallel) trace.executed = thread->paused_at;
        break;
    }
}

/* Before the call: afterwards another thread may have got the memory. */
void origins_change(enum changing_call call, const uint64_t given[most_arguments])
{
    if (call == call_munmap) pw_origins_discarded(given[0], given[1], true);
    if (call == call_madvise && given[2] == MADV_DONTNEED) pw_origins_discarded(given[0], given[1], false);
}

void origins_changed(enum changing_call call, const uint64_t given[most_arguments], uint64_t result)
{
    switch (call) {
    case call_mmap:
        pw_origins_discarded(result, given[1], true);
        if ((given[3] & MAP_ANONYMOUS) != 0 && given[2] != PROT_NONE) pw_origins_mapped(result, given[1]);
        break;
    case call_mremap: pw_origins_moved(given[0], given[1], result, given[2]); break;
    case call_brk: pw_origins_break(result); break;
    case call_munmap: pw_origins_discarded(given[0], 0, true); break; /* the mappings that another thread has read since */
    case call_madvise:
    case changing_calls: break;
    }
}
