/* The selection file: origins of memory to be put on huge pages (docs/explanation/origins.md). One line per entry:
 *
 *   module ID PATH              the file with this build ID, when the selection was made
 *   wrapper ID+OFFSET           a return address in a function that allocates for its caller
 *   allocation ID+OFFSET [ID+OFFSET]  an allocation site's return address, and its caller's
 *   static ID SYMBOL            a static object
 *
 * ID is a build ID, or the name of a file without one. OFFSET counts from the first mapped byte. # begins a comment.
 * PAGEWISE_ORIGINS=1+3 takes the first and third of the allocation sites and static objects; without it, all are taken.
 */
#pragma once
#include "build_id.h"
#include "node.h"

#include <sys/mman.h>
#include <sys/stat.h>

enum entry_kind { MODULE, WRAPPER, ALLOCATION, STATIC, ENTRY_KINDS };
static const char *const entry_kinds[ENTRY_KINDS] = {"module", "wrapper", "allocation", "static"};

struct address {
    unsigned module;
    uint64_t offset; /* 0: none */
};
struct entry {
    enum entry_kind kind;
    struct address first, second;
    const char *text; /* the path of a module, the symbol of a static object */
};
struct module {
    const char *id;
    uintptr_t base; /* where it is loaded; 0 before */
};
struct selection {
    struct entry *entries;
    struct module *modules;
    unsigned entry_count, module_count, origins;
};

/* The number of a module, which is added if it is new. */
static unsigned module_of(struct selection *selection, const char *id)
{
    for (unsigned number = 0; number < selection->module_count; number++)
        if (!strcmp(selection->modules[number].id, id)) return number;
    selection->modules[selection->module_count].id = id;
    return selection->module_count++;
}

/* Reads ID+OFFSET; returns whether it is one. */
static int read_address(struct selection *selection, char *word, struct address *address)
{
    char *plus = word ? strrchr(word, '+') : NULL, *end = NULL;
    if (!plus || plus == word) return 0;
    *plus = '\0';
    address->offset = strtoull(plus + 1, &end, 16);
    address->module = module_of(selection, word);
    return !*end && address->offset;
}

/* Whether PAGEWISE_ORIGINS names the origin with this number. */
static int is_taken(unsigned number)
{
    const char *at = getenv("PAGEWISE_ORIGINS");
    int is_named = !at || !*at;
    for (char *end; !is_named && *at; at = *end ? end + 1 : end) is_named = strtoul(at, &end, 10) == number;
    return is_named;
}

/* Reads one line; returns whether it is well formed. */
static int read_entry(struct selection *selection, char *line)
{
    struct entry entry = {0};
    char *rest = NULL, *word = strtok_r(line, " \t", &rest), *first = strtok_r(NULL, " \t", &rest);
    if (!word || *word == '#') return 1;
    if (!first) return 0;
    while (entry.kind < ENTRY_KINDS && strcmp(entry_kinds[entry.kind], word)) entry.kind++;
    if (entry.kind == ENTRY_KINDS) return 0;
    if (entry.kind == MODULE) {
        /* The path is the rest of the line. */
        entry.text = rest + strspn(rest, " \t");
    } else {
        char *second = strtok_r(NULL, " \t", &rest), *more = second && *second != '#' ? strtok_r(NULL, " \t", &rest) : NULL;
        if (second && *second == '#') second = NULL;
        if (entry.kind == STATIC) entry.text = second;
        else if (!read_address(selection, first, &entry.first)) return 0;
        if (entry.kind == WRAPPER && second) return 0;
        if (entry.kind == ALLOCATION && second && !read_address(selection, second, &entry.second)) return 0;
        if (more && *more != '#') return 0;
    }
    if (entry.kind == MODULE || entry.kind == STATIC) {
        if (!entry.text || !*entry.text) return 0;
        entry.first.module = module_of(selection, first);
    }
    int is_origin = entry.kind == ALLOCATION || entry.kind == STATIC;
    if (!is_origin || is_taken(++selection->origins)) selection->entries[selection->entry_count++] = entry;
    return 1;
}

/* Reads a selection, which stays in memory. Without malloc: it may be called from there. Returns 0, -1 if the file cannot be
 * read (errno), or the number of a line that is none of a selection. */
static int read_selection(const char *path, struct selection *selection)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC), lines = 1, bad = 0;
    *selection = (struct selection){0};
    if (file < 0) return -1;
    if (fstat(file, &status) || status.st_size > 1 << 26) status.st_size = 0;
    size_t length = (size_t)status.st_size;
    char *text = mmap(NULL, length + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (text != MAP_FAILED && pread(file, text, length, 0) != (ssize_t)length) text = MAP_FAILED;
    close(file);
    if (text == MAP_FAILED) return -1;
    for (size_t at = 0; at < length; at++) lines += text[at] == '\n';
    size_t entries = (size_t)lines * sizeof *selection->entries, modules = 2 * (size_t)lines * sizeof *selection->modules;
    char *room = mmap(NULL, entries + modules, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return -1;
    selection->entries = (struct entry *)(void *)room;
    selection->modules = (struct module *)(void *)(room + entries);
    int number = 0;
    for (char *line = text, *next; line && !bad; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = '\0';
        number++;
        if (!read_entry(selection, line)) bad = number;
    }
    return bad;
}
