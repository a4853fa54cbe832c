/* The report of the plug-in: counts of regions and functions, as JSON. */
#include "origins.h"
#include "plugin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_functions = 40 };

static void write_counts(FILE *out, const uint64_t counts[PW_COUNTS])
{
    const char *separator = "";
    for (int i = 0; i < PW_COUNTS; i++) {
        const char *name = pw_model_name(trace.model, (enum pw_count)i);
        if (name == NULL) continue;
        fprintf(out, "%s\"%s\":%" PRIu64, separator, name, counts[i]);
        separator = ",";
    }
}

static int by_symbol(const void *a, const void *b)
{
    const struct site *const *left = a, *const *right = b;
    return strcmp((*left)->symbol, (*right)->symbol);
}

static int by_misses(const void *a, const void *b)
{
    const struct site *const *left = a, *const *right = b;
    if ((*left)->tlb != (*right)->tlb) return (*left)->tlb < (*right)->tlb ? 1 : -1;
    return strcmp((*left)->symbol, (*right)->symbol);
}

/* The functions with the most TLB misses. */
static void write_functions(FILE *out)
{
    size_t count = 0, functions = 0;
    for (struct site *site = trace.sites; site != NULL; site = site->next) count += site->accesses > 0;
    struct site **sorted = malloc((count + 1) * sizeof *sorted);
    if (sorted == NULL) stop("out of memory");
    count = 0;
    for (struct site *site = trace.sites; site != NULL; site = site->next) {
        if (site->accesses == 0) continue;
        if (site->symbol == NULL || site->symbol[0] == '\0') site->symbol = "(shared libraries)";
        sorted[count++] = site;
    }
    qsort(sorted, count, sizeof *sorted, by_symbol);
    for (size_t i = 0; i < count; i++) {
        if (functions > 0 && strcmp(sorted[functions - 1]->symbol, sorted[i]->symbol) == 0) {
            struct site *sum = sorted[functions - 1];
            sum->accesses += sorted[i]->accesses;
            sum->tlb += sorted[i]->tlb;
            sum->walks += sorted[i]->walks;
            sum->refills += sorted[i]->refills;
        } else {
            sorted[functions++] = sorted[i];
        }
    }
    qsort(sorted, functions, sizeof *sorted, by_misses);
    for (size_t i = 0; i < functions && i < most_functions; i++) {
        fprintf(out, "%s{\"function\":", i > 0 ? "," : "");
        pw_origins_text(out, sorted[i]->symbol);
        fprintf(out, ",\"ACCESSES\":%" PRIu64 ",\"L1D_TLB_REFILL\":%" PRIu64 ",\"PAGE_WALKS\":%" PRIu64
                     ",\"L1D_CACHE_REFILL\":%" PRIu64 "}",
                sorted[i]->accesses, sorted[i]->tlb, sorted[i]->walks, sorted[i]->refills);
    }
    free(sorted);
}

void write_report(void)
{
    FILE *out = fopen(trace.out, "we");
    if (out == NULL) stop("cannot write %s: %s", trace.out, strerror(errno));
    fputs("{\"geometry\":", out);
    pw_origins_text(out, trace.model->geometry.name);
    fprintf(out, ",\"pages\":\"%s\",\"observed_by\":\"%s\",\"unclear_extents\":%" PRIu64 ",\"whole\":%s,\"open_regions\":%d,"
                 "\"accesses_of_other_threads\":%" PRIu64 ",\"child_processes\":%" PRIu64 ",\"unseen_instructions\":%" PRIu64 ",\"counts\":{",
            trace.pages, trace.observer.pagemap >= 0 ? "pagemap" : "smaps", trace.observer.unclear, trace.whole ? "true" : "false",
            trace.depth, trace.elsewhere, trace.children, trace.unseen);
    write_counts(out, trace.total);
    fputs("},\"regions\":[", out);
    for (int i = 0; i < trace.n_regions; i++) {
        fprintf(out, "%s{\"name\":", i > 0 ? "," : "");
        pw_origins_text(out, trace.region[i].name);
        fprintf(out, ",\"calls\":%" PRIu64 ",\"counts\":{", trace.region[i].calls);
        write_counts(out, trace.region[i].count);
        fputs("}}", out);
    }
    fputs("],\"functions\":[", out);
    write_functions(out);
    fputs("]", out);
    if (trace.origins) {
        fprintf(out, ",\"instructions\":%" PRIu64 ",\"sites\":%s,\"origins\":", trace.executed, trace.library_end > 0 ? "true" : "false");
        pw_origins_write(out);
    }
    fputs("}\n", out);
    if (fclose(out) != 0) stop("cannot write %s: %s", trace.out, strerror(errno));
}
