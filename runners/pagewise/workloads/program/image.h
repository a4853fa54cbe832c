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

/* The program's file. `loader`: that of the program, empty for a static one. `runtime`: a library that must be loaded
 * before any other, and serves malloc; empty without one. is_elf: else a script. */
struct image {
    char path[PATH_MAX], loader[PATH_MAX], runtime[64];
    int is_elf, is_foreign, has_tunable, is_musl, is_new_glibc;
};

__attribute__((noreturn, format(printf, 3, 4))) static void fail(int code, const char *remedy, const char *format, ...)
{
    static char text[2 * PATH_MAX];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    fprintf(stderr, "pagewise: error: %s\n", plain(text));
    if (remedy) fprintf(stderr, "  remedy: %s\n", remedy);
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

/* AddressSanitizer's runtime, of GCC or Clang: it ends the program if another library is loaded before it. */
static int is_runtime(const char *library, size_t length)
{
    static const char *const names[] = {"libasan.so", "libclang_rt.asan"};
    const char *slash = memrchr(library, '/', length), *name = slash ? slash + 1 : library;
    for (size_t number = 0; number < sizeof names / sizeof *names; number++)
        if (length - (size_t)(name - library) >= strlen(names[number]) && !strncmp(name, names[number], strlen(names[number])))
            return 1;
    return 0;
}

/* A runtime among the libraries that are preloaded. */
static void find_preloaded_runtime(const char *list, struct image *image)
{
    for (size_t length; list && *list; list += length + (list[length] != '\0')) {
        length = strcspn(list, ": ");
        if (is_runtime(list, length)) snprintf(image->runtime, sizeof image->runtime, "%.*s", (int)length, list);
    }
}

/* A runtime among the libraries that the program names itself; `segments` are those of its file. */
static void find_linked_runtime(int file, const Elf64_Phdr *segments, int count, struct image *image)
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
        if (entry.d_tag != DT_NEEDED || pread(file, name, sizeof name - 1, (off_t)(names_at + entry.d_un.d_val)) < 0) continue;
        if (is_runtime(name, strlen(name))) memcpy(image->runtime, name, sizeof name);
    }
}

static void examine(const char *name, struct image *image)
{
    Elf64_Ehdr head, own;
    find_program(name, image->path);
    find_preloaded_runtime(getenv("LD_PRELOAD"), image);
    int file = open(image->path, O_RDONLY | O_CLOEXEC), self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (file >= 0 && read(file, &head, sizeof head) == sizeof head && !memcmp(head.e_ident, ELFMAG, SELFMAG)) {
        image->is_elf = 1;
        image->is_foreign = head.e_ident[EI_CLASS] != ELFCLASS64 || self < 0
                            || read(self, &own, sizeof own) != sizeof own || own.e_machine != head.e_machine;
        static Elf64_Phdr segments[MOST_SEGMENTS];
        size_t room = head.e_phnum < MOST_SEGMENTS ? head.e_phnum * sizeof *segments : sizeof segments;
        ssize_t got = image->is_foreign ? 0 : pread(file, segments, room, (off_t)head.e_phoff);
        int count = got < 0 ? 0 : (int)((size_t)got / sizeof *segments);
        for (int number = 0; number < count; number++) {
            if (segments[number].p_type != PT_INTERP || segments[number].p_filesz >= PATH_MAX) continue;
            if (pread(file, image->loader, segments[number].p_filesz, (off_t)segments[number].p_offset) < 0)
                image->loader[0] = '\0';
        }
        find_linked_runtime(file, segments, count, image);
    }
    if (file >= 0) close(file);
    if (self >= 0) close(self);
    if (!image->is_elf || image->is_foreign) return;
    const char *of_libc = *image->loader ? image->loader : image->path;
    image->is_musl = strstr(image->loader, "ld-musl") != NULL;
    image->has_tunable = contains(of_libc, "glibc.malloc.hugetlb");
    image->is_new_glibc = contains(of_libc, "GLIBC_2.34");
}

/* Whether a library can be preloaded into the program. What a script starts is unknown. */
static int can_preload(const struct image *image)
{
    return !*image->runtime && (!image->is_elf || (!image->is_foreign && *image->loader && !image->is_musl));
}
