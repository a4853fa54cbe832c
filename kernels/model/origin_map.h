/* The origin of each 16 bytes of the program's memory, by number, in extents of 2 MiB; and which pages were touched. */
#ifndef PAGEWISE_ORIGIN_MAP_H
#define PAGEWISE_ORIGIN_MAP_H

#include <stdbool.h>
#include <stdint.h>

enum { PW_MAP_PAGE_SHIFT = 12 };

/* `account` is called for each origin that gains or loses bytes, also for 0, which is not an origin. */
void pw_map_open(void (*account)(uint32_t origin, int64_t bytes));

/* Memory is of this origin from now on; `only_free`: where it has none. */
void pw_map_assign(uint64_t address, uint64_t bytes, uint32_t origin, bool only_free);

/* Address space that cannot be accessed is reserved by this origin (0: by none) from now on. */
void pw_map_reserve(uint64_t address, uint64_t bytes, uint32_t origin);

/* Memory from `start` to `end` can be accessed: around an address that was reserved, it is of the origin that did so. */
void pw_map_open_reserved(uint64_t address, uint64_t start, uint64_t end);

/* The origin of an address. */
uint32_t pw_map_at(uint64_t address);

/* Whether the page was touched since it was mapped; from now on it is, or not, as `touched`. */
bool pw_map_touch(uint64_t address, bool touched);

/* Whether no page of the extent around an address was touched: its first access would be the fault of a huge page. */
bool pw_map_is_untouched(uint64_t address);

/* The pages from an address on are untouched. */
void pw_map_untouch(uint64_t address, uint64_t bytes);

/* A plug-in, or a preloaded library, cannot end the program normally: the error goes to standard error, where the runner reads it. */
void stop(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* The memory that was allocated; stops if there is none. */
void *pw_need(void *memory);

/* A hash. */
uint64_t pw_mixed(uint64_t value);

#endif
