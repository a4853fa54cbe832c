/* See reported.h. */
#include "reported.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { page_4k = 1, page_2m = 2, page_1g = 8 }; /* as in leaf 0x18, EBX */

/* The descriptors of leaf 2 of processors from 2008 on; ways 0: fully associative. */
static const struct {
    uint8_t descriptor, level;
    uint16_t entries;
    uint8_t ways, pages;
} descriptors[] = {
    {0x03, 1, 64, 4, page_4k},   {0x5a, 1, 32, 4, page_2m},   {0x63, 1, 32, 4, page_2m},
    {0x63, 1, 4, 4, page_1g},    {0x6a, 1, 64, 8, page_4k},   {0x6b, 1, 256, 8, page_4k},
    {0x6c, 1, 128, 8, page_2m},  {0x6d, 1, 16, 0, page_1g},   {0xa0, 1, 32, 0, page_4k},
    {0xba, 1, 64, 4, page_4k},   {0xc2, 1, 16, 4, page_4k | page_2m}, {0x64, 2, 512, 4, page_4k},
    {0xb4, 2, 256, 4, page_4k},  {0xc1, 2, 1024, 8, page_4k | page_2m}, {0xc3, 2, 1536, 6, page_4k | page_2m},
    {0xc3, 2, 16, 4, page_1g},   {0xca, 2, 512, 4, page_4k},
};

void pw_cpuid_of_machine(uint32_t leaf, uint32_t subleaf, uint32_t r[pw_cpuid_registers])
{
    for (int i = 0; i < pw_cpuid_registers; i++) r[i] = 0;
#if defined(__x86_64__)
    __get_cpuid_count(leaf, subleaf, &r[pw_cpuid_eax], &r[pw_cpuid_ebx], &r[pw_cpuid_ecx], &r[pw_cpuid_edx]);
#else
    (void)leaf;
    (void)subleaf;
#endif
}

static struct pw_tlb_reported tlb_of(uint32_t entries, uint32_t ways)
{
    return (struct pw_tlb_reported){(int32_t)entries, (int32_t)(ways == 0 ? entries : ways)};
}

static struct pw_tlb_reported by_descriptor(pw_cpuid *cpuid, int level, uint32_t pages)
{
    uint32_t r[pw_cpuid_registers];
    cpuid(2, 0, r);
    r[pw_cpuid_eax] &= ~UINT32_C(0xff);
    for (int i = 0; i < 4 * pw_cpuid_registers; i++) {
        if (r[i / 4] >> 31 != 0) continue;
        const uint32_t descriptor = r[i / 4] >> i % 4 * 8 & 0xff;
        for (unsigned k = 0; k < sizeof descriptors / sizeof *descriptors; k++)
            if (descriptors[k].descriptor == descriptor && descriptors[k].level == level && (descriptors[k].pages & pages) != 0)
                return tlb_of(descriptors[k].entries, descriptors[k].ways);
    }
    return tlb_of(0, 0);
}

static struct pw_tlb_reported by_intel(pw_cpuid *cpuid, int level, uint32_t pages)
{
    enum { data = 1, unified = 3, loads = 4 };
    uint32_t r[pw_cpuid_registers];
    cpuid(0x18, 0, r);
    for (uint32_t last = r[pw_cpuid_eax], i = 0; i <= last && last < 64; i++) {
        cpuid(0x18, i, r);
        const uint32_t type = r[pw_cpuid_edx] & 0x1f, ways = r[pw_cpuid_ebx] >> 16;
        if (type != data && type != unified && type != loads) continue;
        if ((int)(r[pw_cpuid_edx] >> 5 & 7) != level || (r[pw_cpuid_ebx] & pages) == 0) continue;
        return tlb_of(ways * r[pw_cpuid_ecx], ways);
    }
    return by_descriptor(cpuid, level, pages);
}

static struct pw_tlb_reported by_amd(pw_cpuid *cpuid, int level, uint32_t pages)
{
    static const uint32_t ways[16] = {0, 1, 2, 3, 4, 6, 8, 0, 16, 0, 32, 48, 64, 96, 128, 0};
    uint32_t r[pw_cpuid_registers];
    if (level > 2) return tlb_of(0, 0);
    const bool giant = (pages & page_1g) != 0;
    cpuid(giant ? 0x80000019 : level == 1 ? 0x80000005 : 0x80000006, 0, r);
    const uint32_t word = giant ? r[level == 1 ? pw_cpuid_eax : pw_cpuid_ebx] : r[pages & page_4k ? pw_cpuid_ebx : pw_cpuid_eax];
    if (level == 1 && !giant) return tlb_of(word >> 16 & 0xff, word >> 24 == 0xff ? 0 : word >> 24);
    return word >> 28 == 0 ? tlb_of(0, 0) : tlb_of(word >> 16 & 0xfff, ways[word >> 28]);
}

struct pw_tlb_reported pw_tlb_reported(pw_cpuid *cpuid, int level, int64_t page)
{
    uint32_t r[pw_cpuid_registers];
    const uint32_t pages = page == 4096 ? page_4k : page == INT64_C(1) << 21 ? page_2m : page == INT64_C(1) << 30 ? page_1g : 0;
    cpuid(0, 0, r);
    if (pages == 0) return tlb_of(0, 0);
    if (r[pw_cpuid_ebx] == 0x756e6547) return by_intel(cpuid, level, pages); /* Genu */
    if (r[pw_cpuid_ebx] == 0x68747541) return by_amd(cpuid, level, pages);   /* Auth */
    return tlb_of(0, 0);
}

bool pw_tlb_virtual(pw_cpuid *cpuid)
{
    uint32_t r[pw_cpuid_registers];
    cpuid(1, 0, r);
    return r[pw_cpuid_ecx] >> 31 != 0;
}
