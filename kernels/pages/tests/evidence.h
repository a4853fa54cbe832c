/* For the page tests: readings of the kernel's page tables independent of smaps, and ways to disturb a
   mapping without the allocator's knowledge. Sizes in bytes; start addresses of pages are rounded down, ends up. */
#ifndef PAGEWISE_PAGES_EVIDENCE_H
#define PAGEWISE_PAGES_EVIDENCE_H

#include <stdint.h>

/* Of [address, address + bytes): what is mapped by an entry of huge size (PAGEMAP_SCAN, Linux 6.7); -1: the kernel
   does not report it. */
int64_t evidence_huge_bytes(char *address, int64_t bytes);

/* Of these: what is present in base pages and in compound pages of any size, mTHP included (pagemap and
   kpageflags, root); -1: not permitted. */
int64_t evidence_compound_bytes(char *address, int64_t bytes);

/* Map memory without a policy, touch it, return its address; NULL if refused. */
char *evidence_plain_memory(int64_t bytes);

/* 1 if any page of the range belongs to a mapping that can be read. */
int32_t evidence_is_accessible(char *address, int64_t bytes);

/* For the page that holds the address: release its memory; unmap it; make it read-only. 0: done. */
int32_t evidence_drop_page(char *address);
int32_t evidence_unmap_page(char *address);
int32_t evidence_protect_page(char *address);

/* Advise for or against transparent huge pages on the whole pages of huge size that hold the range. 0: done. */
int32_t evidence_advise(char *address, int64_t bytes, int64_t huge_size, int32_t huge);

/* 1 if this kernel supports MADV_COLLAPSE. */
int32_t evidence_can_collapse(void);

/* Whether prctl disables transparent huge pages for the process. */
int32_t evidence_thp_disabled(void);

/* The number in a file; -1: it cannot be read. */
int64_t evidence_number(const char *path);

#endif
