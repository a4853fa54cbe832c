/* The function that a symbol of a preloaded library hides: the next one in the order of symbols.
 *
 * Not by dlsym: it allocates and frees, and it takes away the message that the program expects from dlerror. Programs call
 * these functions before any constructor has run, and from inside of dlsym.
 */
#ifndef PAGEWISE_NEXT_H
#define PAGEWISE_NEXT_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The linker names it so. NOLINTNEXTLINE(bugprone-reserved-identifier) */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

/* The table that an entry of an object's dynamic section points to. The loader has relocated most of them. */
static const void *table_of(const struct link_map *object, ElfW(Sxword) tag)
{
    for (const ElfW(Dyn) *entry = object->l_ld; entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == tag) {
            const ElfW(Addr) place = (entry->d_un.d_ptr < object->l_addr ? object->l_addr : 0) + entry->d_un.d_ptr;
            return (const void *)place;
        }
    return NULL;
}

enum { HIDDEN_VERSION = 0x8000 };

/* The tables of an object's symbols; `versions` is NULL where they have none. */
struct symbols {
    const ElfW(Sym) *entries;
    const char *names;
    const ElfW(Half) *versions;
};

/* Whether this symbol is the definition of a function that a program without versions gets. */
static int is_defined(const struct symbols *symbols, uint32_t number, const char *name)
{
    const ElfW(Sym) *symbol = &symbols->entries[number];
    if (symbol->st_shndx == SHN_UNDEF || !symbol->st_value || strcmp(symbols->names + symbol->st_name, name) != 0) return 0;
    return !symbols->versions || !(symbols->versions[number] & HIDDEN_VERSION);
}

/* By either of the two hash tables of an object (gABI; the GNU one has no description but binutils' and glibc's source). */
static const ElfW(Sym) *find_symbol(const struct link_map *object, const char *name)
{
    const struct symbols symbols = {table_of(object, DT_SYMTAB), table_of(object, DT_STRTAB), table_of(object, DT_VERSYM)};
    const uint32_t *hashes = table_of(object, DT_GNU_HASH), *plain = table_of(object, DT_HASH);
    uint32_t hash = 5381;
    if (!symbols.entries || !symbols.names) return NULL;
    for (const char *at = name; *at; at++) hash = hash * 33 + (unsigned char)*at;
    if (hashes && hashes[0]) {
        const uint32_t *buckets = (const uint32_t *)((const ElfW(Addr) *)(hashes + 4) + hashes[2]);
        const uint32_t *chain = buckets + hashes[0], first = hashes[1];
        for (uint32_t number = buckets[hash % hashes[0]]; number >= first && number; number++) {
            uint32_t of_symbol = chain[number - first];
            if ((of_symbol | 1) == (hash | 1) && is_defined(&symbols, number, name)) return &symbols.entries[number];
            if (of_symbol & 1) break;
        }
    } else if (plain && !hashes) {
        for (uint32_t number = 0; number < plain[1]; number++)
            if (is_defined(&symbols, number, name)) return &symbols.entries[number];
    }
    return NULL;
}

/* The function with this name in an object; NULL if it defines none. */
static void *function_in(const struct link_map *object, const char *name)
{
    const ElfW(Sym) *symbol = object ? find_symbol(object, name) : NULL;
    if (!symbol) return NULL;
    uintptr_t place = object->l_addr + symbol->st_value;
    void *(*choose)(void) = NULL;
    memcpy(&choose, &place, sizeof choose);
    return ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC ? choose() : (void *)place;
}

/* The first object behind this library that defines the function. The C library defines all that are asked for. */
static const struct link_map *next_object(const char *name)
{
    const struct link_map *object = _r_debug.r_map;
    while (object && object->l_addr != (uintptr_t)&__ehdr_start) object = object->l_next;
    while (object && (object = object->l_next))
        if (find_symbol(object, name)) return object;
    return NULL;
}

__attribute__((unused)) static void *next_function(const char *name) { return function_in(next_object(name), name); }

#endif
