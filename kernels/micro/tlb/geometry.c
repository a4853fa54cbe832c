/* The geometry file of a node. Its TLBs come last, so that a run with other pages adds its own. */
#include "measure.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { text_length = 256, cpuid_indices = 8 };

static const char *kind_of(int64_t page)
{
    return page == sysconf(_SC_PAGESIZE) ? "pages: base" : "pages: huge";
}

bool pw_tlb_can_write(const char *file, int64_t page, char *reason, char *remedy, int32_t length)
{
    const bool is_new = access(file, F_OK) != 0;
    bool can_write = true;
    char line[4 * text_length];
    FILE *opened = fopen(file, "a+e");
    if (opened == NULL || fseek(opened, 0, SEEK_SET) != 0) {
        if (opened != NULL) (void)fclose(opened);
        (void)snprintf(reason, (size_t)length, "%s cannot be written", file);
        (void)snprintf(remedy, (size_t)length, "name a file in a folder that you may write to");
        return false;
    }
    while (can_write && fgets(line, sizeof line, opened) != NULL) can_write = strstr(line, kind_of(page)) == NULL;
    (void)fclose(opened);
    if (is_new) (void)unlink(file);
    (void)snprintf(reason, (size_t)length, "%s has TLBs with %s", file, kind_of(page));
    (void)snprintf(remedy, (size_t)length, "name a new file, or choose other --pages");
    return can_write;
}

/* The first word of a property of a cache of the first CPU; false: there is none. */
static bool read_cache(int index, const char *property, char word[text_length])
{
    char path[text_length];
    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, property);
    FILE *file = fopen(path, "re");
    const bool read = file != NULL && fscanf(file, "%255s", word) == 1;
    if (file != NULL) (void)fclose(file);
    return read;
}

/* Returns how many data caches there are. */
static int write_caches(FILE *out)
{
    int count = 0;
    char type[text_length], level[text_length], size[text_length], ways[text_length], line[text_length];
    for (int index = 0; index < cpuid_indices && read_cache(index, "type", type); index++) {
        long long kib = 0;
        if (strcmp(type, "Instruction") == 0 || !read_cache(index, "level", level) || !read_cache(index, "size", size)) continue;
        if (!read_cache(index, "ways_of_associativity", ways) || !read_cache(index, "coherency_line_size", line)) continue;
        if (sscanf(size, "%lldK", &kib) != 1) continue;
        if (count++ == 0) (void)fputs("caches:\n", out);
        (void)fprintf(out, "  - {level: %s, bytes: %lld, ways: %s, line_bytes: %s, inclusion: none, source: sysfs}\n", level, kib * 1024,
                ways, line);
    }
    return count;
}

static bool write_head(FILE *out, const struct pw_tlb_measured *tlb)
{
    char host[text_length] = "this node";
    const int64_t pmd = INT64_C(1) << 21;
    (void)gethostname(host, sizeof host - 1);
    (void)fprintf(out, "schema: pagewise.geometry/1\nname: node\ntitle: \"one core of %s\"\n", host);
    (void)fprintf(out, "pages: {base: %lld, huge: %lld, source: the operating system}\n", (long long)tlb->base,
            (long long)(tlb->page > tlb->base ? tlb->page : pmd));
    if (write_caches(out) == 0) return false;
    (void)fputs("tlbs:\n", out);
    return true;
}

bool pw_tlb_write(const char *file)
{
    const struct pw_tlb_measured *tlb = pw_tlb_result();
    FILE *out = tlb->estimate.levels > 0 ? fopen(file, "ae") : NULL;
    if (out == NULL) return false;
    bool written = ftell(out) > 0 || write_head(out, tlb);
    for (int i = 0; i < tlb->estimate.levels; i++) {
        const struct pw_tlb_level *level = &tlb->estimate.level[i];
        (void)fprintf(out, "  - {level: %d, entries: %d, ways: %d, replacement: %s, %s,\n", i + 1, level->entries, level->ways,
                level->replacement == pw_tlb_fifo ? "fifo" : "lru", kind_of(tlb->page));
        (void)fprintf(out, "     miss_ns: %.2f,", level->cost_ns);
        if (tlb->held < tlb->page) (void)fprintf(out, " entry_bytes: %lld,", (long long)tlb->held);
        (void)fputc('\n', out);
        (void)fprintf(out, "     source: \"pw-tlb; confidence: entries %.2f, ways %.2f, %s %.2f, cost of a miss %.2f%s%s\"}\n",
                level->entries_confidence, level->ways_confidence,
                level->replacement == pw_tlb_unknown ? "LRU is assumed, neither LRU nor FIFO" : "replacement",
                level->replacement_confidence, level->cost_confidence, level->hashed ? "; its index is hashed, here it is not" : "",
                tlb->held < tlb->page ? "; an entry holds a base page of a huge page" : "");
    }
    written &= ferror(out) == 0;
    return fclose(out) == 0 && written;
}
