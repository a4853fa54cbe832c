/* CPUID's TLB leaves, as three kinds of processor report them. */
#include "expect.h"
#include "reported.h"

struct leaf {
    uint32_t leaf, subleaf, r[pw_cpuid_registers];
};

static const struct leaf *leaves;

static void faked(uint32_t leaf, uint32_t subleaf, uint32_t r[pw_cpuid_registers])
{
    for (int k = 0; k < pw_cpuid_registers; k++) r[k] = 0;
    for (const struct leaf *one = leaves; one->r[0] != 0 || one->r[1] != 0 || one->r[2] != 0; one++)
        for (int k = 0; one->leaf == leaf && one->subleaf == subleaf && k < pw_cpuid_registers; k++) r[k] = one->r[k];
}

static bool is(int level, int64_t page, int32_t entries, int32_t ways)
{
    const struct pw_tlb_reported reported = pw_tlb_reported(faked, level, page);
    return reported.entries == entries && reported.ways == ways;
}

int main(void)
{
    enum { k4 = 4096, m2 = 2 << 20, g1 = 1 << 30 };
    /* A Zen 4: 72 entries, fully associative; then 3072, with 8 ways for 4 KiB and 6 for 2 MiB. 64 entries for 1 GiB. */
    static const struct leaf zen4[] = {{0, 0, {16, 0x68747541, 0x444d4163, 0x69746e65}},
                                       {0x80000005, 0, {0xff48ff40, 0xff48ff40, 0, 0}},
                                       {0x80000006, 0, {0x5c002200, 0x6c004200, 0, 0}},
                                       {0x80000019, 0, {0xf040f040, 0, 0, 0}},
                                       {0, 0, {0}}};
    leaves = zen4;
    EXPECT(is(1, k4, 72, 72) && is(1, m2, 72, 72) && is(1, g1, 64, 64));
    EXPECT(is(2, k4, 3072, 8) && is(2, m2, 3072, 6) && is(2, g1, 0, 0) && is(3, k4, 0, 0));
    EXPECT(!pw_tlb_virtual(faked));
    /* Leaf 0x18: 96 entries in 6 ways for loads, 16 for stores, 2048 in 16 ways for 4 KiB and 2 MiB; a hypervisor. */
    static const struct leaf leaf18[] = {{0, 0, {32, 0x756e6547, 0x6c65746e, 0x49656e69}},
                                         {1, 0, {1, 0, UINT32_C(1) << 31, 0}},
                                         {0x18, 0, {3, 0, 0, 0}},
                                         {0x18, 1, {0, 16 << 16 | 15, 1, 1 << 8 | 1 << 5 | 5}},
                                         {0x18, 2, {0, 6 << 16 | 1, 16, 1 << 5 | 4}},
                                         {0x18, 3, {0, 16 << 16 | 3, 128, 2 << 5 | 3}},
                                         {0, 0, {0}}};
    leaves = leaf18;
    EXPECT(is(1, k4, 96, 6) && is(2, k4, 2048, 16) && is(2, m2, 2048, 16) && is(1, m2, 0, 0));
    EXPECT(pw_tlb_virtual(faked));
    /* Leaf 2 of a Skylake: 64 entries for 4 KiB, 1536 for 4 KiB and 2 MiB, 16 for 1 GiB. */
    static const struct leaf leaf2[] = {{0, 0, {22, 0x756e6547, 0x6c65746e, 0x49656e69}},
                                        {2, 0, {0x76036301, 0x00f0b5ff, 0, 0x00c30000}},
                                        {0, 0, {0}}};
    leaves = leaf2;
    EXPECT(is(1, k4, 64, 4) && is(1, m2, 32, 4) && is(2, k4, 1536, 6) && is(2, m2, 1536, 6) && is(2, g1, 16, 4));
    EXPECT(is(1, 65536, 0, 0));
    return reported_faults();
}
