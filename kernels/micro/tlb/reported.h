/* What CPUID reports of the data TLBs. */
#ifndef PAGEWISE_TLB_REPORTED_H
#define PAGEWISE_TLB_REPORTED_H

#include <stdbool.h>
#include <stdint.h>

enum { pw_cpuid_eax, pw_cpuid_ebx, pw_cpuid_ecx, pw_cpuid_edx, pw_cpuid_registers };

/* Reads a leaf of CPUID; tests pass those of other machines. */
typedef void pw_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t registers[pw_cpuid_registers]);

/* This processor; all zeros where there is no CPUID. */
void pw_cpuid_of_machine(uint32_t leaf, uint32_t subleaf, uint32_t registers[pw_cpuid_registers]);

struct pw_tlb_reported {
    int32_t entries, ways; /* 0: not reported */
};

/* The level, counted from 1, for pages of this size. Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A,
 * CPUID (leaves 2 and 0x18); AMD64 Architecture Programmer's Manual, volume 3, appendix E (0x80000005, 6 and 19). */
struct pw_tlb_reported pw_tlb_reported(pw_cpuid *cpuid, int level, int64_t page);

/* Whether a hypervisor is present, which may hide or fake leaves. */
bool pw_tlb_virtual(pw_cpuid *cpuid);

#endif
