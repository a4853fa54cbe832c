/* Build IDs of ELF files, as hexadecimal text. */
#pragma once
#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST_ID = 2 * 64 + 1, LARGEST_NOTES = 1 << 16 };

/* The build ID among the notes of a segment; the empty text if it is not there. */
static void find_build_id(const char *notes, size_t length, char id[LONGEST_ID])
{
    Elf64_Nhdr note;
    id[0] = '\0';
    for (size_t at = 0; at + sizeof note <= length;) {
        memcpy(&note, notes + at, sizeof note);
        size_t name = at + sizeof note, content = name + ((note.n_namesz + 3u) & ~3u);
        at = content + ((note.n_descsz + 3u) & ~3u);
        if (at > length || note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 || memcmp(notes + name, "GNU", 4)) continue;
        for (size_t byte = 0; byte < note.n_descsz && 2 * byte + 2 < LONGEST_ID; byte++)
            snprintf(id + 2 * byte, 3, "%02x", (unsigned char)notes[content + byte]);
        return;
    }
}

/* The build ID of a file. Returns 0 if it cannot be read as an ELF file of 64 bits. */
__attribute__((unused)) static int read_build_id(const char *path, char id[LONGEST_ID])
{
    static char notes[LARGEST_NOTES];
    Elf64_Ehdr head;
    Elf64_Phdr segment;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    int is_elf = file >= 0 && pread(file, &head, sizeof head, 0) == sizeof head && !memcmp(head.e_ident, ELFMAG, SELFMAG)
                 && head.e_ident[EI_CLASS] == ELFCLASS64;
    id[0] = '\0';
    for (int number = 0; is_elf && !*id && number < head.e_phnum; number++) {
        off_t at = (off_t)(head.e_phoff + (uint64_t)number * sizeof segment);
        if (pread(file, &segment, sizeof segment, at) != sizeof segment || segment.p_type != PT_NOTE) continue;
        ssize_t length = segment.p_filesz <= sizeof notes ? pread(file, notes, segment.p_filesz, (off_t)segment.p_offset) : 0;
        if (length > 0) find_build_id(notes, (size_t)length, id);
    }
    if (file >= 0) close(file);
    return is_elf;
}
