/* The segments and static objects of an ELF file in memory. */
#ifndef PAGEWISE_ELF_SYMBOLS_H
#define PAGEWISE_ELF_SYMBOLS_H

#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef void (*pw_elf_visit)(void *context, const char *name, uint64_t start, uint64_t bytes);

static void visit_symbols(const char *content, size_t size, const Elf64_Shdr *sections, const Elf64_Shdr *table, uint64_t bias,
                          pw_elf_visit object, void *context)
{
    const Elf64_Shdr *strings = &sections[table->sh_link];
    if (table->sh_offset + table->sh_size > size || strings->sh_offset + strings->sh_size > size || strings->sh_size == 0) return;
    const Elf64_Sym *symbol = (const Elf64_Sym *)(const void *)(content + table->sh_offset);
    for (size_t i = 0; i < table->sh_size / sizeof *symbol; i++) {
        const unsigned char type = ELF64_ST_TYPE(symbol[i].st_info);
        if (type != STT_OBJECT && type != STT_COMMON) continue;
        if (symbol[i].st_shndx == SHN_UNDEF || symbol[i].st_name >= strings->sh_size) continue;
        object(context, content + strings->sh_offset + symbol[i].st_name, bias + symbol[i].st_value, symbol[i].st_size);
    }
}

static void visit(const char *content, size_t size, uint64_t base, pw_elf_visit segment, pw_elf_visit object, void *context)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)content;
    if (size < sizeof *head || memcmp(content, ELFMAG, SELFMAG) != 0 || content[EI_CLASS] != ELFCLASS64) return;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(const void *)(content + head->e_phoff);
    if (head->e_phoff + head->e_phnum * sizeof *segments > size) return;
    uint64_t lowest = UINT64_MAX;
    for (int i = 0; i < head->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD && segments[i].p_vaddr < lowest) lowest = segments[i].p_vaddr;
    if (lowest == UINT64_MAX) return;
    const uint64_t bias = base - (lowest & ~UINT64_C(0xfff));
    for (int i = 0; i < head->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD) segment(context, NULL, bias + segments[i].p_vaddr, segments[i].p_memsz);
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(content + head->e_shoff);
    if (head->e_shoff == 0 || head->e_shoff + head->e_shnum * sizeof *sections > size) return;
    const Elf64_Shdr *table = NULL;
    for (int i = 0; i < head->e_shnum; i++)
        if (sections[i].sh_type == SHT_SYMTAB || (sections[i].sh_type == SHT_DYNSYM && table == NULL)) table = &sections[i];
    if (table != NULL && table->sh_link < head->e_shnum) visit_symbols(content, size, sections, table, bias, object, context);
}

/* Visit each loaded segment of the 64-bit ELF file that is mapped from `base` on, then each object of its symbol table, or
   of its dynamic one where it is stripped. Does nothing for any other file. */
static void pw_elf_each(const char *path, uint64_t base, pw_elf_visit segment, pw_elf_visit object, void *context)
{
    struct stat status;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    if (fstat(file, &status) == 0 && status.st_size > 0) {
        const size_t size = (size_t)status.st_size;
        void *content = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
        if (content != MAP_FAILED) {
            visit(content, size, base, segment, object, context);
            munmap(content, size);
        }
    }
    close(file);
}

#endif
