/* The segments and static objects of an ELF file in memory. */
#ifndef PAGEWISE_ELF_SYMBOLS_H
#define PAGEWISE_ELF_SYMBOLS_H

#include <stdint.h>

typedef void (*pw_elf_visit)(void *context, const char *name, uint64_t start, uint64_t bytes);

/* Visit each loaded segment of the 64-bit ELF file that is mapped from `base` on, then each object of its symbol table, or
   of its dynamic one where it is stripped. Does nothing for any other file. */
void pw_elf_each(const char *path, uint64_t base, pw_elf_visit segment, pw_elf_visit object, void *context);

#endif
