/* The file that a command executes, and what page policies need to know of it; failures of the launcher. */
#pragma once
#include "node.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { USAGE = 2, UNAVAILABLE = 3, REFUSED = 4, NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

/* The program's file. `loader`: that of the program, empty for a static one. is_elf: else a script. */
struct image {
    char path[PATH_MAX], loader[PATH_MAX];
    int is_elf, is_foreign, has_tunable, is_musl, is_new_glibc;
};

__attribute__((noreturn, format(printf, 3, 4))) static void fail(int code, const char *remedy, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    fputs("pagewise: error: ", stderr);
    vfprintf(stderr, format, values);
    va_end(values);
    fputs("\n", stderr);
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

static void examine(const char *name, struct image *image)
{
    Elf64_Ehdr head, own;
    find_program(name, image->path);
    int file = open(image->path, O_RDONLY | O_CLOEXEC), self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (file >= 0 && read(file, &head, sizeof head) == sizeof head && !memcmp(head.e_ident, ELFMAG, SELFMAG)) {
        image->is_elf = 1;
        image->is_foreign = head.e_ident[EI_CLASS] != ELFCLASS64 || self < 0
                            || read(self, &own, sizeof own) != sizeof own || own.e_machine != head.e_machine;
        for (int number = 0; !image->is_foreign && number < head.e_phnum; number++) {
            Elf64_Phdr segment;
            off_t at = (off_t)(head.e_phoff + (uint64_t)number * head.e_phentsize);
            if (pread(file, &segment, sizeof segment, at) != sizeof segment) break;
            if (segment.p_type != PT_INTERP || segment.p_filesz >= PATH_MAX) continue;
            if (pread(file, image->loader, segment.p_filesz, (off_t)segment.p_offset) < 0) image->loader[0] = '\0';
        }
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
    return !image->is_elf || (!image->is_foreign && *image->loader && !image->is_musl);
}
