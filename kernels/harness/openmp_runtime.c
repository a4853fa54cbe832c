/* The library that serves the program's threads: the dynamic linker may load another one than the program was linked with. */
#define _GNU_SOURCE
#include "computed_by.h"

#include <ctype.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The parts of an ELF file in memory that identify it. */
struct image {
    uintptr_t inside; /* an address inside it */
    const char *strings;
    const ElfW(Verdef) *versions;
    size_t version_count, own_name;
    const unsigned char *build;
    size_t build_bytes;
};

static void read_dynamic(struct image *image, const ElfW(Dyn) *entry, uintptr_t base)
{
    /* glibc has relocated the addresses in this table, other C libraries have not. */
#define ADDRESS(entry) ((entry)->d_un.d_ptr < base ? base + (entry)->d_un.d_ptr : (entry)->d_un.d_ptr)
    for (; entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) {
        case DT_STRTAB: image->strings = (const char *)ADDRESS(entry); break;
        case DT_SONAME: image->own_name = entry->d_un.d_val; break;
        case DT_VERDEF: image->versions = (const void *)ADDRESS(entry); break;
        case DT_VERDEFNUM: image->version_count = entry->d_un.d_val; break;
        default: break;
        }
    }
}

static void read_notes(struct image *image, const unsigned char *note, const unsigned char *end)
{
    while (note + sizeof(ElfW(Nhdr)) <= end) {
        const ElfW(Nhdr) *head = (const void *)note;
        const unsigned char *text = note + sizeof *head, *content = text + (head->n_namesz + 3) / 4 * 4;
        if (head->n_type == NT_GNU_BUILD_ID && head->n_namesz == 4 && memcmp(text, "GNU", 4) == 0) {
            image->build = content;
            image->build_bytes = head->n_descsz;
            return;
        }
        note = content + (head->n_descsz + 3) / 4 * 4;
    }
}

static int read_image(struct dl_phdr_info *info, size_t size, void *data)
{
    struct image *image = data;
    const ElfW(Phdr) *segment = info->dlpi_phdr, *end = segment + info->dlpi_phnum;
    int matches = 0;
    (void)size;
    for (; segment < end; segment++) {
        const uintptr_t first = info->dlpi_addr + segment->p_vaddr;
        matches |= segment->p_type == PT_LOAD && image->inside - first < segment->p_memsz;
    }
    for (segment = info->dlpi_phdr; matches && segment < end; segment++) {
        const uintptr_t first = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_DYNAMIC) read_dynamic(image, (const void *)first, info->dlpi_addr);
        if (segment->p_type == PT_NOTE && image->build == NULL) {
            read_notes(image, (const void *)first, (const unsigned char *)first + segment->p_memsz);
        }
    }
    return matches;
}

/* The last of its versions whose names begin with the prefix: libraries list them in chronological order. */
static void newest(const struct image *image, const char *beginning, char *text, size_t length)
{
    const char *latest = NULL;
    const ElfW(Verdef) *version = image->versions;
    for (size_t i = 0; version != NULL && i < image->version_count; i++) {
        const ElfW(Verdaux) *name = (const void *)((const char *)version + version->vd_aux);
        const char *word = image->strings + name->vda_name;
        if (strncmp(word, beginning, strlen(beginning)) == 0 && isdigit((unsigned char)word[strlen(beginning)])) latest = word;
        version = (const void *)((const char *)version + version->vd_next);
    }
    if (latest == NULL) return;
    const size_t used = strlen(text);
    snprintf(text + used, length - used, "%s%s", used > 0 ? " " : "", latest);
}

void pw_threads_runtime(char *file, char *name, char *interfaces, char *build, int32_t length)
{
    const size_t room = (size_t)length;
    struct image image = {.inside = (uintptr_t)dlsym(RTLD_DEFAULT, "omp_get_thread_num")};
    *file = *name = *interfaces = *build = '\0';
    if (image.inside == 0) return;
    pw_library_of("omp_get_thread_num", file, length);
    dl_iterate_phdr(read_image, &image);
    if (image.strings == NULL) return;
    const char *own_name = image.strings + image.own_name;
    if (image.own_name > 0) snprintf(name, room, "%.*s", (int)strcspn(own_name, "."), own_name);
    newest(&image, "OMP_", interfaces, room);
    newest(&image, "GOMP_", interfaces, room);
    for (size_t i = 0; i < image.build_bytes && 2 * i + 2 < room; i++) snprintf(build + 2 * i, 3, "%02x", image.build[i]);
}
