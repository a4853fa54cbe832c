/* What depends on the processor that is emulated. */
#include "plugin.h"

bool know_target(const char *target)
{
    /* mmap, munmap, mremap, brk, madvise; clone, fork, vfork; prctl */
    static const struct calls known[] = {{"x86_64", {9, 11, 25, 12, 28}, {56, 57, 58}, 157, false},
                                         {"aarch64", {222, 215, 216, 214, 233}, {220, -1, -1}, 167, true}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(target, known[i].target) == 0) trace.calls = &known[i];
    return trace.calls != NULL;
}

enum changing_call change_of(int64_t number)
{
    int i = 0;
    while (i < changing_calls && number != trace.calls->changes[i]) i++;
    return (enum changing_call)i;
}

/* SVE's loads and stores, except those of whole registers (LDR, STR) and prefetches: QEMU up to 7.2 does not report these
   accesses to plug-ins. Encodings: Arm ARM for A-profile (DDI 0487), C4.1, SVE: bits 31..25 of the four groups of memory
   instructions are 1xx0010. */
bool is_unseen(const struct qemu_plugin_insn *instruction)
{
    uint32_t code;
    if (!trace.calls->sve || qemu_plugin_insn_size(instruction) != sizeof code) return false;
    memcpy(&code, qemu_plugin_insn_data(instruction), sizeof code);
    if ((code & UINT32_C(0x9e000000)) != UINT32_C(0x84000000)) return false;
    const bool prefetch = (code & UINT32_C(0xffc08000)) == UINT32_C(0x85c00000);
    const bool load = (code & UINT32_C(0xffc0a000)) == UINT32_C(0x85800000);
    const bool store = (code & UINT32_C(0xffc0a000)) == UINT32_C(0xe5800000);
    return !load && !store && !prefetch;
}
