/* A program for the tracer, with page accesses that can be counted by hand: model_walk random|cyclic|none PAGES COUNT [huge].
   The pages are of 4 KiB and lie in memory that is aligned to 2 MiB; `huge` asks for huge pages. `none` enters no region, and
   `avx512` uses an instruction of AVX-512. */
#define _GNU_SOURCE
#include "marks.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    const size_t pages = strtoul(argv[2], NULL, 10), extent = 2 << 20, bytes = (pages * 4096 + extent - 1) / extent * extent;
    const long count = strtol(argv[3], NULL, 10);
    char *memory = mmap(NULL, bytes + extent, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    char *start = (char *)(((uintptr_t)memory + extent - 1) / extent * extent);
    if (argc > 4 && madvise(start, bytes, MADV_HUGEPAGE) != 0) return 1;
    memset(start, 0, bytes);
    pw_mark_array("pages", 5, start, (int64_t)bytes);
    if (strcmp(argv[1], "avx512") == 0) __asm__ volatile(".byte 0x62, 0xf1, 0xfd, 0x48, 0xef, 0xc0"); /* vpxorq zmm0 */
    uint64_t value = 1;
    register uint64_t sum = 0;
    if (strcmp(argv[1], "none") != 0) pw_mark_begin(argv[1], (int32_t)strlen(argv[1]));
    if (strcmp(argv[1], "random") == 0) {
        /* Knuth's multiplier for 64 bits; the high bits are good. */
        for (long i = 0; i < count; i++) {
            value = value * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            sum += *(volatile uint64_t *)(start + (value >> 33) % pages * 4096);
        }
    } else {
        size_t page = 0;
        for (long i = 0; i < count; i++) {
            sum += *(volatile uint64_t *)(start + page * 4096);
            page = page + 1 == pages ? 0 : page + 1;
        }
    }
    if (strcmp(argv[1], "none") != 0) pw_mark_end();
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
