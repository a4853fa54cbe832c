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

/* Whether a file contains a text. */
static int contains(const char *path, const char *text)
{
    int file = open(path, O_RDONLY | O_CLOEXEC), contained = 0;
    struct stat status;
    if (file < 0) return 0;
    if (!fstat(file, &status) && status.st_size > 0) {
        size_t length = (size_t)status.st_size;
        void *content = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file, 0);
        if (content != MAP_FAILED) {
            contained = memmem(content, length, text, strlen(text)) != NULL;
            munmap(content, length);
        }
    }
    close(file);
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

/* Notes the allocators among the libraries that the program names itself; `segments` are those of its file. */
static void note_linked(int file, const Elf64_Phdr *segments, int count, struct image *image)
{
    Elf64_Dyn entry = {0};
    uint64_t dynamic = 0, length = 0, names = 0, names_at = 0;
    for (int number = 0; number < count; number++)
        if (segments[number].p_type == PT_DYNAMIC) dynamic = segments[number].p_offset, length = segments[number].p_filesz;
    for (uint64_t at = 0; at < length && pread(file, &entry, sizeof entry, (off_t)(dynamic + at)) > 0; at += sizeof entry)
        if (entry.d_tag == DT_STRTAB) names = entry.d_un.d_ptr;
    for (int number = 0; number < count; number++)
        if (segments[number].p_type == PT_LOAD && names - segments[number].p_vaddr < segments[number].p_filesz)
            names_at = names - segments[number].p_vaddr + segments[number].p_offset;
    for (uint64_t at = 0; at < length && pread(file, &entry, sizeof entry, (off_t)(dynamic + at)) > 0; at += sizeof entry) {
        char name[sizeof image->runtime] = "";
        if (entry.d_tag == DT_NEEDED && pread(file, name, sizeof name - 1, (off_t)(names_at + entry.d_un.d_val)) >= 0)
            note_library(name, strlen(name), image);
    }
}

/* Reads the segments of a file of either class; returns their number. */
static int read_segments(int file, const Elf64_Ehdr *head, Elf64_Phdr segments[MOST_SEGMENTS])
{
    const Elf32_Ehdr *small = (const Elf32_Ehdr *)(const void *)head;
    int is_small = head->e_ident[EI_CLASS] == ELFCLASS32, count = is_small ? small->e_phnum : head->e_phnum;
    Elf32_Phdr segment;
    if (count > MOST_SEGMENTS) count = MOST_SEGMENTS;
    for (int number = 0; number < count; number++) {
        off_t at = is_small ? (off_t)(small->e_phoff + (size_t)number * sizeof segment)
                            : (off_t)(head->e_phoff + (size_t)number * sizeof *segments);
        ssize_t got = is_small ? pread(file, &segment, sizeof segment, at) : pread(file, &segments[number], sizeof *segments, at);
        if (got < (ssize_t)sizeof segment) return number;
        if (is_small)
            segments[number] = (Elf64_Phdr){.p_type = segment.p_type, .p_offset = segment.p_offset, .p_filesz = segment.p_filesz};
    }
    return count;
}

/* Whether a library can be preloaded into the program. What a script starts is unknown. */
static int can_preload(const struct image *image)
{
    return !*image->runtime && (!image->is_elf || (!image->is_foreign && *image->loader && image->is_glibc));
}

static void examine(const char *name, struct image *image)
{
    Elf64_Ehdr head, own;
    static Elf64_Phdr segments[MOST_SEGMENTS];
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
        int count = head.e_ident[EI_DATA] == own.e_ident[EI_DATA] ? read_segments(file, &head, segments) : 0;
        for (int number = 0; number < count; number++) {
            if (segments[number].p_type != PT_INTERP || segments[number].p_filesz >= PATH_MAX) continue;
            if (pread(file, image->loader, segments[number].p_filesz, (off_t)segments[number].p_offset) < 0)
                image->loader[0] = '\0';
        }
        if (head.e_ident[EI_CLASS] == ELFCLASS64) note_linked(file, segments, count, image);
    }
    if (file >= 0) close(file);
    if (self >= 0) close(self);
    if (!image->is_elf) return;
    const char *of_libc = *image->loader ? image->loader : image->path;
    image->has_tunable = contains(of_libc, "glibc.malloc.hugetlb");
    image->is_new_glibc = contains(of_libc, "GLIBC_2.34");
    image->is_glibc = image->has_tunable || contains(of_libc, *image->loader ? "GLIBC_2" : "glibc.malloc.trim_threshold");
    /* Looking for texts takes time in a large file. */
    int is_decisive = !can_preload(image) || !image->has_tunable;
    char *inside = is_decisive ? image->allocator : image->inside;
    for (size_t number = 0; number < sizeof allocators / sizeof *allocators && (is_thorough || is_decisive); number++)
        if (!*image->allocator && !*inside && contains(image->path, allocators[number].text))
            snprintf(inside, sizeof image->inside, "%s (inside)", allocators[number].name);
}
