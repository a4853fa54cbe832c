/* The file that a command executes, and what page policies need to know of it; failures of the launcher. */
#pragma once
#include "node.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { USAGE = 2, UNAVAILABLE = 3, REFUSED = 4, NOT_EXECUTABLE = 126, NOT_FOUND = 127, MOST_SEGMENTS = 64 };

/* The program's file. `loader`: that of the program, empty for a static one. `allocator`: what serves malloc, empty for the
 * C library; `inside`: one that makes no difference to policies; `runtime`: the library of an allocator that must be loaded
 * before any other. is_elf: else a script. is_foreign: of another architecture. */
struct image {
    char path[PATH_MAX], loader[PATH_MAX], allocator[64], inside[64], runtime[64];
    int is_elf, is_foreign, has_tunable, is_glibc, is_new_glibc;
};

/* Allocators: how the names of their libraries begin, and a text in programs that are linked with them statically. GCC's and
 * Clang's AddressSanitizer ends the program if another library is loaded before it; tools know its other names. */
static const struct {
    const char *name, *library, *text;
} allocators[] = {
    {"jemalloc", "libjemalloc", "MALLOC_CONF"},
    {"tcmalloc", "libtcmalloc", "TCMALLOC_"},
    {"mimalloc", "libmimalloc", "MIMALLOC_"},
    {"TBB malloc", "libtbbmalloc_proxy", "TBB_MALLOC_"},
    {"Hoard", "libhoard", "libhoard"},
    {"snmalloc", "libsnmalloc", "snmalloc"},
    {"AddressSanitizer", "libasan.so", "ASan runtime does not come first"},
    {"AddressSanitizer", "libclang_rt.asan", "ASan runtime does not come first"},
};
static const char sanitizer[] = "AddressSanitizer";

/* What answers instead of a message: --check. */
static void (*answer)(const char *reason, const char *remedy);

/* Whether to look for an allocator also where it makes no difference (--allocator). */
static int is_thorough;

__attribute__((noreturn, format(printf, 3, 4))) static void fail(int code, const char *remedy, const char *format, ...)
{
    static char text[2 * PATH_MAX];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (answer) answer(plain(text), remedy);
    else fprintf(stderr, "pagewise: error: %s\n", plain(text));
    if (remedy && !answer) fprintf(stderr, "  remedy: %s\n", remedy);
    exit(code);
}

/* The file that `execvp` would execute. */
static void find_program(const char *name, char path[PATH_MAX])
{
    struct stat status;
    int error = ENOENT;
    const char *folders = strchr(name, '/') ? "" : getenv("PATH");
    for (const char *at = folders ? folders : "/bin:/usr/bin";; at++) {
        int length = (int)strcspn(at, ":");
        snprintf(path, PATH_MAX, "%.*s%s%s", length, at, length ? "/" : "", name);
        if (!stat(path, &status) && S_ISREG(status.st_mode)) {
            if (!access(path, X_OK)) return;
            error = EACCES;
        }
        at += length;
        if (!*at) break;
    }
    if (error == EACCES) fail(NOT_EXECUTABLE, NULL, "%s: this file is not executable", name);
    fail(NOT_FOUND, "name a program with its path, or one on PATH", "%s: there is no such program", name);
}

/* The segments of an ELF file; `number` is 0 if they cannot be read. */
struct segments {
    Elf64_Phdr entries[MOST_SEGMENTS];
    int number;
};

/* Whether a file contains a text: in the data of a program, if its constants are not in a segment with machine code, else
 * anywhere. Machine code and information for debuggers may be large. */
static int contains(const char *path, const struct segments *segments, const char *text)
{
    int file = open(path, O_RDONLY | O_CLOEXEC), contained = 0, is_apart = 0;
    struct stat status;
    if (file < 0) return 0;
    size_t length = !fstat(file, &status) && status.st_size > 0 ? (size_t)status.st_size : 0;
    char *content = length ? mmap(NULL, length, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    close(file);
    if (content == MAP_FAILED) return 0;
    for (int number = 0; segments && number < segments->number; number++) {
        const Elf64_Phdr *segment = &segments->entries[number];
        if (segment->p_type != PT_LOAD || segment->p_flags & PF_X || segment->p_offset > length
            || segment->p_filesz > length - segment->p_offset)
            continue;
        is_apart |= !(segment->p_flags & PF_W);
        contained |= memmem(content + segment->p_offset, segment->p_filesz, text, strlen(text)) != NULL;
    }
    if (!is_apart) contained = memmem(content, length, text, strlen(text)) != NULL;
    munmap(content, length);
    return contained;
}

/* Notes an allocator that is linked or preloaded; the first one serves malloc. */
static void note_library(const char *library, size_t length, struct image *image)
{
    const char *slash = memrchr(library, '/', length), *name = slash ? slash + 1 : library;
    size_t rest = length - (size_t)(name - library);
    for (size_t number = 0; number < sizeof allocators / sizeof *allocators; number++) {
        const char *start = allocators[number].library;
        if (*image->allocator || rest < strlen(start) || strncmp(name, start, strlen(start))) continue;
        snprintf(image->allocator, sizeof image->allocator, "%s", allocators[number].name);
        if (!strcmp(image->allocator, sanitizer)) snprintf(image->runtime, sizeof image->runtime, "%.*s", (int)length, library);
    }
}

/* Notes the allocators among the libraries that the program names itself. */
static void note_linked(int file, const struct segments *of, struct image *image)
{
    const Elf64_Phdr *segments = of->entries;
    Elf64_Dyn entry = {0};
    uint64_t dynamic = 0, length = 0, names = 0, names_at = 0;
    for (int number = 0; number < of->number; number++)
        if (segments[number].p_type == PT_DYNAMIC) dynamic = segments[number].p_offset, length = segments[number].p_filesz;
    for (uint64_t at = 0; at < length && pread(file, &entry, sizeof entry, (off_t)(dynamic + at)) > 0; at += sizeof entry)
        if (entry.d_tag == DT_STRTAB) names = entry.d_un.d_ptr;
    for (int number = 0; number < of->number; number++)
        if (segments[number].p_type == PT_LOAD && names - segments[number].p_vaddr < segments[number].p_filesz)
            names_at = names - segments[number].p_vaddr + segments[number].p_offset;
    for (uint64_t at = 0; at < length && pread(file, &entry, sizeof entry, (off_t)(dynamic + at)) > 0; at += sizeof entry) {
        char name[sizeof image->runtime] = "";
        if (entry.d_tag == DT_NEEDED && pread(file, name, sizeof name - 1, (off_t)(names_at + entry.d_un.d_val)) >= 0)
            note_library(name, strlen(name), image);
    }
}

/* Reads the segments of a file of either class. */
static void read_segments(int file, const Elf64_Ehdr *head, struct segments *segments)
{
    const Elf32_Ehdr *small = (const Elf32_Ehdr *)(const void *)head;
    int is_small = head->e_ident[EI_CLASS] == ELFCLASS32, count = is_small ? small->e_phnum : head->e_phnum;
    for (int number = 0; number < count && number < MOST_SEGMENTS; number++) {
        Elf64_Phdr *segment = &segments->entries[number];
        Elf32_Phdr of_32;
        size_t at = is_small ? small->e_phoff + (size_t)number * sizeof of_32 : head->e_phoff + (size_t)number * sizeof *segment;
        size_t length = is_small ? sizeof of_32 : sizeof *segment;
        if (pread(file, is_small ? (void *)&of_32 : segment, length, (off_t)at) != (ssize_t)length) return;
        if (is_small)
            *segment = (Elf64_Phdr){.p_type = of_32.p_type, .p_flags = of_32.p_flags, .p_offset = of_32.p_offset,
                                    .p_filesz = of_32.p_filesz};
        segments->number = number + 1;
    }
}

/* Whether a library can be preloaded into the program. What a script starts is unknown. */
static int can_preload(const struct image *image)
{
    return !*image->runtime && (!image->is_elf || (!image->is_foreign && *image->loader && image->is_glibc));
}

static void examine(const char *name, struct image *image)
{
    Elf64_Ehdr head, own;
    static struct segments segments;
    find_program(name, image->path);
    const char *preloaded = getenv("LD_PRELOAD");
    for (size_t length; preloaded && *preloaded; preloaded += length + (preloaded[length] != '\0')) {
        length = strcspn(preloaded, ": ");
        note_library(preloaded, length, image);
    }
    int file = open(image->path, O_RDONLY | O_CLOEXEC), self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (file >= 0 && self >= 0 && read(file, &head, sizeof head) == sizeof head && !memcmp(head.e_ident, ELFMAG, SELFMAG)
        && read(self, &own, sizeof own) == sizeof own) {
        image->is_elf = 1;
        image->is_foreign = head.e_ident[EI_CLASS] != ELFCLASS64 || own.e_machine != head.e_machine;
        if (head.e_ident[EI_DATA] == own.e_ident[EI_DATA]) read_segments(file, &head, &segments);
        for (int number = 0; number < segments.number; number++) {
            const Elf64_Phdr *segment = &segments.entries[number];
            if (segment->p_type != PT_INTERP || segment->p_filesz >= PATH_MAX) continue;
            if (pread(file, image->loader, segment->p_filesz, (off_t)segment->p_offset) < 0) image->loader[0] = '\0';
        }
        if (head.e_ident[EI_CLASS] == ELFCLASS64) note_linked(file, &segments, image);
    }
    if (file >= 0) close(file);
    if (self >= 0) close(self);
    if (!image->is_elf) return;
    const char *of_libc = *image->loader ? image->loader : image->path;
    const struct segments *in = *image->loader ? NULL : &segments;
    image->has_tunable = contains(of_libc, in, "glibc.malloc.hugetlb");
    image->is_new_glibc = *image->loader && contains(of_libc, in, "GLIBC_2.34");
    image->is_glibc = image->has_tunable || contains(of_libc, in, *image->loader ? "GLIBC_2" : "glibc.malloc.trim_threshold");
    /* Looking for texts takes time in a large file. */
    int is_decisive = !can_preload(image) || !image->has_tunable;
    char *inside = is_decisive ? image->allocator : image->inside;
    for (size_t number = 0; number < sizeof allocators / sizeof *allocators && (is_thorough || is_decisive); number++)
        if (!*image->allocator && !*inside && contains(image->path, &segments, allocators[number].text))
            snprintf(inside, sizeof image->inside, "%s (inside)", allocators[number].name);
}
