/* The origins of the program's memory: allocation sites, static arrays, stack and mappings, and the TLB misses of each
   (docs/explanation/origins.md). */
#ifndef PAGEWISE_ORIGINS_H
#define PAGEWISE_ORIGINS_H

#include "model.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Begin to record. `now` counts the executed instructions, or samples: the clock of lifetimes. model: simulates the program; NULL: samples
   of the time are counted, as misses of the first level. */
void pw_origins_open(const uint64_t *now, const struct pw_model *model);

/* The first access of a program is to its stack. A thread's stack. */
void pw_origins_stack(uint64_t address);
void pw_origins_thread(uint64_t stack, uint64_t bytes);

/* How an access found its address: loaded by one of the last misses, in no such way, or on the page next to the last miss of this
   instruction. */
enum pw_pattern { PW_DEPENDENT, PW_INDEPENDENT, PW_ADJACENT, PW_PATTERNS };

/* Misses at this address (PW_MISSED_ and PW_DISTANCE_SHIFT of model.h). page: the size of the address's page. Returns false for a sample
   where no memory is. */
bool pw_origins_missed(uint64_t address, uint32_t missed, enum pw_pattern pattern, uint64_t page);

/* Forget all samples. */
void pw_origins_reset(void);

/* Memory of `bytes` bytes from `address` on comes from the site of these return addresses, or comes from no site any longer.
   accessible: or else address space, whose memory does when the program makes it accessible. */
void pw_origins_begin(uint64_t address, uint64_t bytes, const uint64_t *frames, int n_frames, bool accessible);
void pw_origins_end(uint64_t address, uint64_t bytes);

/* The program has mapped anonymous memory, discarded memory, moved it, or set its break. */
void pw_origins_mapped(uint64_t address, uint64_t bytes);
void pw_origins_discarded(uint64_t address, uint64_t bytes, bool unmapped);
void pw_origins_moved(uint64_t from, uint64_t old_bytes, uint64_t to, uint64_t bytes);
void pw_origins_break(uint64_t end);

/* The preloaded library reports sites; without it, mappings are distinguished by size. */
void pw_origins_reported(void);

/* As a JSON array. A JSON string, empty for NULL: names of regions, symbols and files. */
void pw_origins_write(FILE *out);
void pw_origins_text(FILE *out, const char *text);

#endif
