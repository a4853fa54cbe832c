/* The simulator against traces with counts computed by hand, and its parsing of geometries. */
#include "expect.h"
#include "model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static struct pw_model *machine(const char *text)
{
    struct pw_geometry geometry;
    char fault[PW_GEOMETRY_TEXT + 1];
    if (!pw_geometry_read(text, &geometry, fault)) {
        printf("geometry refused: %s\n", fault);
        exit(1);
    }
    return pw_model_open(&geometry);
}

static void expect_counts(int line, struct pw_model *model, enum pw_count first, int count, const uint64_t *wanted)
{
    uint64_t counts[PW_COUNTS];
    pw_model_counts(model, counts);
    for (int i = 0; i < count; i++) {
        if (counts[(int)first + i] == wanted[i]) continue;
        printf("line %d: %s is %" PRIu64 ", by hand %" PRIu64 "\n", line, pw_model_name(model, (enum pw_count)((int)first + i)),
               counts[(int)first + i], wanted[i]);
        faults++;
    }
}

#define COUNTS(first, ...)                                                                                                      \
    do {                                                                                                                        \
        const uint64_t wanted[] = {__VA_ARGS__};                                                                                \
        expect_counts(__LINE__, model, first, sizeof wanted / sizeof *wanted, wanted);                                          \
    } while (0)

/* Pages of 4 KiB and 64 KiB; caches large enough to have no effect. */
#define TLBS(lines) "geometry t\npages 4096 65536\n" lines "cache 1 65536 4 64 none\n"

static void touch_pages(struct pw_model *model, const char *pages)
{
    for (; *pages != '\0'; pages++) pw_model_access(model, (uint64_t)(*pages - 'a') * 4096, 8, false);
}

static void test_lru_and_fifo(void)
{
    /* Three entries. abc miss; a hits; under LRU d then evicts b, under FIFO a. The last a: a hit, a miss. */
    struct pw_model *model = machine(TLBS("tlb 1 3 3 lru both\n"));
    touch_pages(model, "abcada");
    COUNTS(PW_TLB_REFILL, 4);
    touch_pages(model, "b");
    COUNTS(PW_TLB_REFILL, 5);
    pw_model_close(model);
    model = machine(TLBS("tlb 1 3 3 fifo both\n"));
    touch_pages(model, "abcada");
    COUNTS(PW_TLB_REFILL, 5);
    /* It replaced b; c and d are present. */
    touch_pages(model, "cdb");
    COUNTS(PW_TLB_REFILL, 6);
    pw_model_close(model);
}

static void test_cyclic(void)
{
    /* N pages in turn through E entries: all miss if N > E, none after the first turn if N <= E. */
    for (int last = 'd'; last <= 'e'; last++) {
        struct pw_model *model = machine(TLBS("tlb 1 4 4 lru both\n"));
        for (int turn = 0; turn < 5; turn++)
            for (int page = 'a'; page <= last; page++) touch_pages(model, (const char[]){(char)page, '\0'});
        COUNTS(PW_TLB_REFILL, last == 'd' ? 4 : 25);
        pw_model_close(model);
    }
}

static void test_sets(void)
{
    /* Two sets of two ways: a, c and e conflict, b is alone in its set. */
    struct pw_model *model = machine(TLBS("tlb 1 4 2 lru both\n"));
    touch_pages(model, "abcebac");
    COUNTS(PW_TLB_REFILL, 6);
    pw_model_close(model);
    /* Three sets, not a power of two: a and d conflict, one way. */
    model = machine(TLBS("tlb 1 3 1 lru both\n"));
    touch_pages(model, "abcdabc");
    COUNTS(PW_TLB_REFILL, 5);
    pw_model_close(model);
}

static void test_two_tlb_levels(void)
{
    /* One entry, then four. abab: all miss the first, two the second. Then c, d, e walk; e evicts a, whose last use in the
       second level is the oldest. */
    struct pw_model *model = machine(TLBS("tlb 1 1 1 lru both\ntlb 2 4 4 lru both\n"));
    touch_pages(model, "abab");
    COUNTS(PW_TLB_REFILL, 4, 2, 0, 2);
    touch_pages(model, "cde");
    COUNTS(PW_TLB_REFILL, 7, 5, 0, 5);
    touch_pages(model, "ba");
    COUNTS(PW_TLB_REFILL, 9, 6, 0, 6);
    pw_model_close(model);
}

static bool is_huge(void *first, uint64_t start)
{
    return start >= *(uint64_t *)first;
}

static void test_page_sizes(void)
{
    /* Memory from 2 MiB on is on 64 KiB pages: 16 touches 4 KiB apart are 16 base pages below, one huge page above. */
    uint64_t boundary = 2 << 20;
    const char *const shared = TLBS("tlb 1 4 4 lru both\n"), *const apart = TLBS("tlb 1 4 4 lru base\ntlb 1 2 2 lru huge\n");
    for (int i = 0; i < 2; i++) {
        struct pw_model *model = machine(i == 0 ? shared : apart);
        pw_mapping_set(&model->mapping, PW_OBSERVED, is_huge, &boundary);
        for (uint64_t at = 0; at < 65536; at += 4096) pw_model_access(model, at, 8, false);
        COUNTS(PW_TLB_REFILL, 16);
        for (uint64_t at = boundary; at < boundary + 65536; at += 4096) pw_model_access(model, at, 8, false);
        COUNTS(PW_TLB_REFILL, 17);
        COUNTS(PW_HUGE_ACCESSES, 16, 32);
        /* The last four base pages: with a shared array one was evicted. */
        for (uint64_t at = 65536 - 4 * 4096; at < 65536; at += 4096) pw_model_access(model, at, 8, false);
        COUNTS(PW_TLB_REFILL, i == 0 ? 21 : 17);
        /* After a reset the same memory may be on other pages; until then the answer is cached. */
        boundary = 0;
        pw_model_access(model, 0, 8, false);
        COUNTS(PW_HUGE_ACCESSES, 16);
        pw_mapping_forget(&model->mapping);
        pw_model_access(model, 64, 8, false);
        COUNTS(PW_HUGE_ACCESSES, 17);
        boundary = 2 << 20;
        pw_model_close(model);
    }
    /* A level without entries for huge pages neither contains nor fills them. */
    struct pw_model *model = machine(TLBS("tlb 1 4 4 lru both\ntlb 2 8 8 lru base\n"));
    pw_mapping_set(&model->mapping, PW_ALL_HUGE, NULL, NULL);
    for (uint64_t at = 0; at < 5 * 65536; at += 65536) pw_model_access(model, at, 8, false);
    pw_model_access(model, 0, 8, false);
    COUNTS(PW_TLB_REFILL, 6, 0, 0, 6);
    pw_model_close(model);
}

static void test_both_page_sizes(void)
{
    /* 6 base pages of 2 huge pages, three times, in 4 entries: all miss on base pages, each huge page once. */
    uint64_t boundary = 0;
    struct pw_model *model = machine(TLBS("tlb 1 4 4 lru both\ntlb 2 64 4 lru both\n"));
    EXPECT(pw_model_open_on_huge(model, PW_OBSERVED, is_huge, &boundary));
    for (int k = 0; k < 3; k++)
        for (uint64_t page = 0; page < 6; page++) {
            const uint32_t missed = pw_model_access(model, page % 2 * 65536 + page * 4096, 8, false);
            const uint32_t on_huge = PW_MISSED_TLB_ON_HUGE | PW_MISSED_ALL_TLBS_ON_HUGE;
            EXPECT((missed & on_huge) == (k == 0 && page < 2 ? on_huge : 0));
        }
    COUNTS(PW_TLB_REFILL, 18, 6, 0, 6);
    COUNTS(PW_TLB_REFILL_ON_HUGE, 2, 2);
    pw_model_close(model);
    /* Where an entry translates two base pages of a huge page, six pages are three entries. */
    model = machine("geometry t\npages 4096 65536 8192\ntlb 1 4 4 lru both\ncache 1 65536 4 64 none\n");
    EXPECT(pw_model_open_on_huge(model, PW_OBSERVED, is_huge, &boundary));
    for (uint64_t page = 0; page < 6; page++) pw_model_access(model, page * 4096, 8, false);
    COUNTS(PW_TLB_REFILL_ON_HUGE, 3, 3);
    pw_model_close(model);
    /* A geometry without entries for huge pages has no second TLBs. */
    model = machine(TLBS("tlb 1 4 4 lru base\n"));
    EXPECT(!pw_model_open_on_huge(model, PW_OBSERVED, is_huge, &boundary));
    EXPECT(pw_model_name(model, PW_PAGE_WALKS_ON_HUGE) == NULL);
    pw_model_close(model);
}

static void test_latest(void)
{
    /* Omitting the accesses that change nothing leaves all misses as they are, one by one. */
    static const char *const geometries[] = {"tlb 1 8 2 lru base\ntlb 1 4 2 lru huge\ntlb 2 32 4 fifo both\n",
                                             "tlb 1 6 3 fifo both\ntlb 2 64 4 lru both\n", "tlb 1 4 4 lru base\n",
                                             "tlb 1 4 4 lru both\ntlb 2 8 8 lru base\n"};
    uint64_t boundary = 8 * 65536;
    for (size_t g = 0; g < sizeof geometries / sizeof *geometries; g++) {
        char text[200];
        snprintf(text, sizeof text, "geometry t\npages 4096 65536\n%s", geometries[g]);
        struct pw_model *all = machine(text), *some = machine(text);
        pw_model_open_on_huge(all, PW_OBSERVED, is_huge, &boundary);
        pw_model_open_on_huge(some, PW_OBSERVED, is_huge, &boundary);
        uint64_t random = g, omitted = 0;
        for (int i = 0; i < 200000; i++) {
            random = random * UINT64_C(6364136223846793005) + 1;
            /* Two pages in three quarters of the accesses, else any of 256. Some accesses cross the end of a page. */
            const uint64_t page = random >> 62 > 0 ? 100 + (random >> 40 & 1) : random >> 33 & 255;
            const uint64_t address = page * 4096 + (random >> 50 & 4095);
            const uint32_t missed = pw_model_access(all, address, 8, false);
            if (pw_model_is_latest(some, address)) {
                EXPECT(missed == 0);
                omitted++;
            } else {
                EXPECT(pw_model_access(some, address, 8, false) == missed);
            }
            if (i % 50000 == 0) {
                boundary = boundary == 0 ? 8 * 65536 : 0;
                pw_model_forget(all);
                pw_model_forget(some);
            }
        }
        EXPECT(omitted > 20000);
        for (int i = PW_TLB_REFILL; i < PW_COUNTS; i++) EXPECT(all->count[i] == some->count[i]);
        pw_model_close(all);
        pw_model_close(some);
    }
}

static void test_across_ends(void)
{
    /* Eight bytes across a line's end are two look-ups; across a page's end, two translations. */
    struct pw_model *model = machine(TLBS("tlb 1 4 4 lru both\n"));
    pw_model_access(model, 60, 8, false);
    COUNTS(PW_LOOKUPS, 2, 1);
    pw_model_access(model, 4092, 8, true);
    COUNTS(PW_LOOKUPS, 4, 2);
    COUNTS(PW_CACHE_REFILL, 4);
    pw_model_close(model);
}

/* 4 lines of 64 bytes, then 8; a TLB that has no effect. */
#define CACHES(second) "geometry t\npages 4096 65536\ntlb 1 64 64 lru both\ncache 1 256 4 64 none\n" second

static void touch_lines(struct pw_model *model, const char *lines, bool store)
{
    for (; *lines != '\0'; lines++) pw_model_access(model, (uint64_t)(*lines - 'a') * 64, 8, store);
}

static void test_write_backs(void)
{
    /* One level: abcd are loaded, b stored to; efgh evict all four: one write-back. */
    struct pw_model *model = machine(CACHES(""));
    touch_lines(model, "abcd", false);
    touch_lines(model, "b", true);
    touch_lines(model, "efgh", false);
    COUNTS(PW_CACHE_REFILL, 8);
    COUNTS(PW_CACHE_WRITE_BACK, 1);
    /* Stored to twice, without other lines between: it is still evicted once. A store after a load of the same line marks
       it. */
    touch_lines(model, "bb", true);
    touch_lines(model, "c", false);
    touch_lines(model, "c", true);
    touch_lines(model, "efgh", false);
    COUNTS(PW_CACHE_WRITE_BACK, 3);
    pw_model_close(model);
}

static void test_two_cache_levels(void)
{
    /* a is stored to and moves from the first level to the second (efgh after bcd: 8 lines, all in the second). */
    struct pw_model *model = machine(CACHES("cache 2 512 8 64 inclusive\n"));
    touch_lines(model, "a", true);
    touch_lines(model, "bcdefgh", false);
    COUNTS(PW_CACHE_REFILL, 8, 8);
    COUNTS(PW_CACHE_WRITE_BACK, 1, 0);
    /* i evicts a, modified, from the second level to memory; the first level holds fghi. */
    touch_lines(model, "i", false);
    COUNTS(PW_CACHE_WRITE_BACK, 1, 1);
    touch_lines(model, "b", false);
    COUNTS(PW_CACHE_REFILL, 10, 9);
    pw_model_close(model);

    /* Inclusive: a stays the latest of the first level by hits that the second does not observe. The ninth line evicts a
       from both: it was modified in the first level only. Not inclusive: a stays in the first. */
    for (int inclusive = 0; inclusive < 2; inclusive++) {
        model = machine(inclusive ? CACHES("cache 2 512 8 64 inclusive\n") : CACHES("cache 2 512 8 64 none\n"));
        touch_lines(model, "a", true);
        for (const char *line = "bcdefghi"; *line != '\0'; line++) {
            touch_lines(model, (const char[]){*line, '\0'}, false);
            if (*line != 'i') touch_lines(model, "a", true);
        }
        COUNTS(PW_CACHE_REFILL, 9, 9);
        if (inclusive) {
            COUNTS(PW_CACHE_WRITE_BACK, 1, 1);
            touch_lines(model, "a", false);
            COUNTS(PW_CACHE_REFILL, 10, 10);
        } else {
            COUNTS(PW_CACHE_WRITE_BACK, 0, 0);
            touch_lines(model, "a", false);
            COUNTS(PW_CACHE_REFILL, 9, 9);
        }
        pw_model_close(model);
    }
}

static void test_victim(void)
{
    /* The second level holds what the first evicted: 4 + 8 lines stay on chip, and none twice. */
    struct pw_model *model = machine(CACHES("cache 2 512 8 64 victim\n"));
    touch_lines(model, "a", true);
    touch_lines(model, "bcdefghijkl", false);
    COUNTS(PW_CACHE_REFILL, 12, 12);
    touch_lines(model, "abcdefghijkl", false);
    COUNTS(PW_CACHE_REFILL, 24, 12);
    /* a was evicted modified from the first level, returned modified, and was evicted again; it was not written to memory.
       */
    COUNTS(PW_CACHE_WRITE_BACK, 2, 0);
    touch_lines(model, "mnopqrstuvwx", false);
    COUNTS(PW_CACHE_WRITE_BACK, 2, 1);
    pw_model_close(model);
}

static void test_hash(void)
{
    /* Four sets of one way; bits 8 and 9 of the address select the set: lines 0, 4, 8 and 12 no longer conflict. */
    const char *const plain = "geometry t\npages 4096 65536\ntlb 1 64 64 lru both\ncache 1 256 1 64 none\n";
    for (int hashed = 0; hashed < 2; hashed++) {
        char text[256];
        snprintf(text, sizeof text, "%s%s", plain, hashed ? "hash 1 8 2 0\n" : "");
        struct pw_model *model = machine(text);
        touch_lines(model, "aeimaeim", false);
        COUNTS(PW_CACHE_REFILL, hashed ? 4 : 8);
        pw_model_close(model);
    }
}

static void test_sectors(void)
{
    /* One set of four ways, two of them for the memory from 4096 on: lines A, B and C of it, a to c of other memory. A B a b fill
       it; c evicts a, the oldest of its sector, and not A; C then evicts A, and at last A evicts B. */
    struct pw_model *model = machine("geometry t\npages 4096 65536\ntlb 1 8 8 lru both\ncache 1 256 4 64 none\nsector 1 1 2\n");
    EXPECT(pw_cache_assign(&model->cache, 4096, 4096, 1));
    for (const char *line = "ABabcABbcCBcA"; *line != '\0'; line++)
        pw_model_access(model, *line < 'a' ? 4096 + (uint64_t)(*line - 'A') * 64 : (uint64_t)(*line - 'a') * 64, 8, false);
    COUNTS(PW_CACHE_REFILL, 7);
    pw_model_close(model);
}

static void test_refusals(void)
{
    static const struct {
        const char *text, *fault;
    } wrong[] = {
        {"", "'geometry'"},
        {"geometry t\n", "'pages'"},
        {"geometry t\npages 4096 65536\n", "TLB"},
        {"geometry t\npages 4096 65536\ntlb 2 4 4 lru both\ncache 1 256 4 64 none\n", "TLB level 1 is missing"},
        {"geometry t\n\npages 65536 4096\n", "line 3: huge pages"},
        {"pages 4096 65000\n", "line 1: a page size"},
        {"pages 4096\n", "line 1: 'pages' takes 2 values, not 1"},
        {"pages 4096 x\n", "line 1: 'x' is not a number"},
        {"pages 4096 65536 2048\n", "line 1: an entry"},
        {"pages 4096 -65536\n", "line 1: '-65536' is not a number"},
        {"tlb 1 10 4 lru both\n", "line 1: the entries"},
        {"tlb 1 4 4 random both\n", "line 1: 'random'"},
        {"tlb 1 4 4 lru all\n", "line 1: 'all'"},
        {"tlb 4 4 4 lru both\n", "line 1: TLBs have levels 1 to 3"},
        {"tlb 1 4 4 lru both\ntlb 1 4 4 lru huge\n", "line 2: level 1 has two TLBs for huge pages"},
        {"cache 2 256 4 64 none\n", "line 1: caches have levels 1 to 3, in this order"},
        {"cache 1 256 4 64 victim\n", "line 1: the first cache"},
        {"cache 1 300 4 64 none\n", "line 1: the bytes"},
        {"cache 1 256 4 64 none\ncache 2 512 4 128 none\n", "line 2: all caches"},
        {"hash 1 8 2 0\n", "line 1: the cache level"},
        {"cache 1 768 4 64 none\nhash 1 8 2 0\n", "line 2: a hash"},
        {"distance 100\n", "line 1: a distance"},
        {"distance 256\ndistance 256\n", "line 2: distances"},
        {"prefetch on\n", "line 1: unknown keyword 'prefetch'"},
        {"a b c d e f g h i\n", "line 1: too many"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct pw_geometry geometry;
        char fault[PW_GEOMETRY_TEXT + 1] = "accepted";
        if (!pw_geometry_read(wrong[i].text, &geometry, fault) && strstr(fault, wrong[i].fault) != NULL) continue;
        printf("geometry %zu: \"%s\", without \"%s\"\n", i, fault, wrong[i].fault);
        faults++;
    }
}

int main(void)
{
    test_lru_and_fifo();
    test_cyclic();
    test_sets();
    test_two_tlb_levels();
    test_page_sizes();
    test_both_page_sizes();
    test_latest();
    test_across_ends();
    test_write_backs();
    test_two_cache_levels();
    test_victim();
    test_hash();
    test_sectors();
    test_refusals();
    return reported_faults();
}
