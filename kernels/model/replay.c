/* Simulates a trace and prints the counts, to check the simulator independently.

       pw-model-replay GEOMETRY < TRACE

   A line of the trace is an access, "r ADDRESS BYTES" or "w ADDRESS BYTES"; "h ADDRESS": the 2 MiB around the address
   are on a huge page from here on; or "1 ADDRESS BYTES" to "3 ADDRESS BYTES": this memory is of that sector. Addresses are
   hexadecimal. */
#include "model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { most_huge = 1024 };

static uint64_t huge_extents[most_huge];
static int n_huge;

static bool is_huge(void *context, uint64_t start)
{
    (void)context;
    for (int i = 0; i < n_huge; i++)
        if (huge_extents[i] == start >> PW_EXTENT_SHIFT) return true;
    return false;
}

int main(int argc, char **argv)
{
    char fault[PW_GEOMETRY_TEXT + 1];
    struct pw_geometry geometry;
    if (argc != 2) {
        fprintf(stderr, "usage: pw-model-replay GEOMETRY < TRACE\n");
        return 2;
    }
    if (!pw_geometry_read_file(argv[1], &geometry, fault)) {
        fprintf(stderr, "pw-model-replay: error: %s: %s\n", argv[1], fault);
        return 2;
    }
    struct pw_model *model = pw_model_open(&geometry);
    if (model == NULL) return 4;
    pw_mapping_set(&model->mapping, PW_OBSERVED, is_huge, NULL);
    char kind;
    uint64_t address;
    while (scanf(" %c %" SCNx64, &kind, &address) == 2) {
        uint32_t bytes = 0;
        if (kind == 'h' && n_huge < most_huge) {
            huge_extents[n_huge++] = address >> PW_EXTENT_SHIFT;
            pw_mapping_forget(&model->mapping);
        } else if ((kind == 'r' || kind == 'w') && scanf("%" SCNu32, &bytes) == 1 && bytes > 0) {
            model->count[kind == 'w' ? PW_STORES : PW_LOADS]++;
            pw_model_access(model, address, bytes, kind == 'w');
        } else if (kind > '0' && kind < '0' + PW_SECTORS && scanf("%" SCNu32, &bytes) == 1 && bytes > 0 &&
                   pw_cache_assign(&model->cache, address, bytes, (uint32_t)(kind - '0'))) {
            continue;
        } else {
            fprintf(stderr, "pw-model-replay: error: '%c %" PRIx64 "' is not a line of a trace\n", kind, address);
            return 2;
        }
    }
    uint64_t counts[PW_COUNTS];
    pw_model_counts(model, counts);
    for (int i = 0; i < PW_COUNTS; i++) {
        const char *name = pw_model_name(model, (enum pw_count)i);
        if (name != NULL) printf("%s %" PRIu64 "\n", name, counts[i]);
    }
    pw_model_close(model);
    return 0;
}
