/* See origin_events.h. */
#define _GNU_SOURCE
#include "origin_events.h"

#include "origin_calls.h"
#include "origins.h"

#include <sys/mman.h>

void origins_begin(void)
{
    pw_origins_open(&trace.executed);
    pw_model_open_on_huge(trace.model, PW_FJMPG, pw_observer_is_data, &trace.observer);
}

void origins_missed(struct site *site, uint64_t address, uint32_t missed)
{
    const struct pw_model *model = trace.model;
    if ((missed & (PW_MISSED_TLB | PW_MISSED_TLB_ON_HUGE)) == 0) return;
    const uint64_t page = address >> model->page_shift[PW_BASE];
    bool follows = false;
    if ((missed & PW_MISSED_TLB) != 0) {
        follows = page - site->last_miss == 1 || site->last_miss - page == 1;
        site->last_miss = page;
    }
    pw_origins_missed(address, missed, follows, model->geometry.page[pw_mapping_class(&trace.model->mapping, address)]);
}

void origins_reported(unsigned vcpu, uint64_t event, uint64_t address, uint64_t bytes, uint64_t stack)
{
    uint64_t frames[PW_ORIGIN_FRAMES];
    const uint64_t n_frames = event >> 8;
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
        if (n_frames <= PW_ORIGIN_FRAMES && read_guest(stack, frames, n_frames * sizeof *frames))
            pw_origins_begin(address, bytes, frames, (int)n_frames);
        break;
    case PW_ORIGIN_END: pw_origins_end(address, bytes); break;
    case PW_ORIGIN_PAUSE:
        if (vcpu != trace.vcpu) break;
        trace.paused = trace.active;
        trace.paused_at = trace.executed;
        trace.active = false;
        break;
    case PW_ORIGIN_RESUME:
        if (vcpu != trace.vcpu) break;
        trace.active = trace.paused;
        trace.executed = trace.paused_at;
        break;
    }
}

void origins_changed(enum changing_call call, uint64_t result)
{
    const uint64_t *given = trace.arguments;
    switch (call) {
    case call_mmap:
        pw_origins_discarded(result, given[1], true);
        if ((given[3] & MAP_ANONYMOUS) != 0 && given[2] != PROT_NONE) pw_origins_mapped(result, given[1]);
        break;
    case call_munmap: pw_origins_discarded(given[0], given[1], true); break;
    case call_mremap: pw_origins_moved(given[0], given[1], result, given[2]); break;
    case call_brk: pw_origins_break(result); break;
    case call_madvise:
        if (given[2] == MADV_DONTNEED) pw_origins_discarded(given[0], given[1], false);
        break;
    case changing_calls: break;
    }
}
