/* The TLBs and data caches of a micro-architecture, read from lines that the runner writes from its geometry
   file (docs/explanation/simulation.md):

       geometry NAME
       pages BASE HUGE [ENTRY]
       distance PAGES
       tlb LEVEL ENTRIES WAYS lru|fifo base|huge|both
       cache LEVEL BYTES WAYS LINE none|inclusive|victim
       hash LEVEL LOWEST WIDTH SHIFT
       sector LEVEL ID WAYS
       array NAME ID

   BASE and HUGE are the page sizes in bytes, powers of two. ENTRY: the bytes of a huge page that one TLB entry translates
   (default: HUGE). `distance` lines, ascending, divide accesses by the number of base pages accessed since the last access to the
   same page. A TLB level has one array for both page sizes or one for each.
   `inclusive` caches evict from the levels before them the lines that they evict themselves; `victim` caches contain the
   lines that the level before them evicted, and nothing else. Each `hash` line XORs WIDTH bits of the address from LOWEST
   on, shifted left by SHIFT, into the set number of that cache. A `sector` line gives lines of the arrays of this ID (1 to 3)
   at most WAYS ways of each set of that cache, and what remains to sector 0: that of all other memory, and of IDs without ways in this level. An `array` line names
   an array of the program and its sector. */
#ifndef PAGEWISE_GEOMETRY_H
#define PAGEWISE_GEOMETRY_H

#include "sets.h"

enum { PW_MOST_LEVELS = 3, PW_MOST_HASHES = 8, PW_GEOMETRY_NAME = 63, PW_GEOMETRY_TEXT = 255 };
enum { PW_MOST_DISTANCES = 12, PW_DISTANCE_WAYS = 8 };
enum { PW_SECTORS = 4, PW_MOST_ARRAYS = 16 };
enum pw_page_class { PW_BASE, PW_HUGE, PW_PAGE_CLASSES };
enum pw_inclusion { PW_NONE, PW_INCLUSIVE, PW_VICTIM };

struct pw_tlb_geometry {
    uint32_t entries, ways;
    enum pw_replacement replacement;
    bool holds[PW_PAGE_CLASSES];
};

struct pw_hash_geometry {
    uint32_t lowest, width, shift;
};

struct pw_cache_geometry {
    uint64_t bytes;
    uint32_t ways;
    enum pw_inclusion inclusion;
    uint32_t n_hashes;
    struct pw_hash_geometry hash[PW_MOST_HASHES];
    bool has_sectors;
    uint32_t sector_ways[PW_SECTORS]; /* at most, of a set, where it has sectors */
};

struct pw_sector_array {
    char name[PW_GEOMETRY_NAME + 1];
    uint32_t sector;
};

struct pw_geometry {
    char name[PW_GEOMETRY_NAME + 1];
    uint64_t page[PW_PAGE_CLASSES];
    uint64_t entry; /* the bytes of a huge page that one TLB entry translates */
    uint32_t n_distances, distance[PW_MOST_DISTANCES]; /* in base pages */
    uint64_t line; /* bytes, of all levels; without caches a base page, which counts as one look-up */
    uint32_t n_tlb_levels, n_cache_levels;
    uint32_t n_tlbs[PW_MOST_LEVELS];
    struct pw_tlb_geometry tlb[PW_MOST_LEVELS][PW_PAGE_CLASSES];
    struct pw_cache_geometry cache[PW_MOST_LEVELS];
    uint32_t n_arrays;
    struct pw_sector_array array[PW_MOST_ARRAYS];
};

/* Read a geometry from text. On false `fault` (of PW_GEOMETRY_TEXT + 1 characters) describes the fault, with the line. */
bool pw_geometry_read(const char *text, struct pw_geometry *geometry, char *fault);

/* The same from a file. */
bool pw_geometry_read_file(const char *name, struct pw_geometry *geometry, char *fault);

#endif
