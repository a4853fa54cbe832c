/* The selection of the policy `where`, as pagewise-exec passes it on: PAGEWISE_WHERE. */
#pragma once
#include "image.h"
#include "selection.h"

static const char where_again[] = "run `pagewise where -- PROGRAM` again, and name its result: --where RESULT";

/* Names the selection to the program: a file, or a result folder with selection.txt. */
static void name_selection(const char *path)
{
    static char file[PATH_MAX + 16], real[PATH_MAX];
    struct stat status;
    int is_folder = !stat(path, &status) && S_ISDIR(status.st_mode);
    snprintf(file, sizeof file, "%s%s", path, is_folder ? "/selection.txt" : "");
    if (!realpath(file, real)) fail(UNAVAILABLE, where_again, "--where %s: %s", file, strerror(errno));
    if (setenv("PAGEWISE_WHERE", real, 1)) fail(REFUSED, NULL, "%s", strerror(errno));
}

static const char *name_of_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Whether the file has this build ID, or this name if it has none. Also if it cannot be read. */
static int is_unchanged(const char *path, const char *id)
{
    char actual_id[LONGEST_ID];
    return !read_build_id(path, actual_id) || !strcmp(*actual_id ? actual_id : name_of_file(path), id);
}

/* Refuses a selection that cannot be read, and one of files that have changed. */
static void check_selection(const struct image *image)
{
    static struct selection selection;
    const char *path = getenv("PAGEWISE_WHERE");
    unsigned allocations = 0, objects = 0, namesakes = 0, same = 0;
    if (!path)
        fail(UNAVAILABLE, "name a result of `pagewise where`: --where RESULT, or PAGEWISE_WHERE=RESULT/selection.txt",
             "the policy where needs a selection of memory");
    int line = read_selection(path, &selection);
    if (line < 0) fail(UNAVAILABLE, where_again, "%s: %s", path, strerror(errno));
    if (line) fail(UNAVAILABLE, where_again, "%s: line %d is not of a selection", path, line);
    for (unsigned number = 0; number < selection.entry_count; number++) {
        const struct entry *entry = &selection.entries[number];
        const char *id = selection.modules[entry->first.module].id;
        allocations += entry->kind == ALLOCATION;
        objects += entry->kind == STATIC;
        if (entry->kind != MODULE) continue;
        if (!is_unchanged(entry->text, id))
            fail(UNAVAILABLE, where_again, "%s has changed since the memory was selected", entry->text);
        if (!image->is_elf || strcmp(name_of_file(entry->text), name_of_file(image->path))) continue;
        namesakes++;
        same += (unsigned)is_unchanged(image->path, id);
    }
    if (!allocations && !objects) fail(UNAVAILABLE, where_again, "%s: no memory is selected", path);
    if (namesakes && !same) fail(UNAVAILABLE, where_again, "%s is not the file whose memory was selected", image->path);
    if (allocations && strstr(*image->allocator ? image->allocator : image->inside, "(inside)"))
        fail(UNAVAILABLE, "link the allocator as a shared library", "%s: it contains its malloc: %s", image->path,
             *image->allocator ? image->allocator : image->inside);
}
