/* Shared by the programs of direct calls: opening a library, the clock, repetitions, exit codes. */
#ifndef PAGEWISE_DIRECT_COMMON_H
#define PAGEWISE_DIRECT_COMMON_H

#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Exit codes: 1: the result is wrong; 2: wrong arguments; 3: library, function or memory are unavailable. */
enum { WRONG = 1, USAGE = 2, UNAVAILABLE = 3 };

_Noreturn static void fail(int code, const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(code);
}

/* A number from the command line, from 1 to `most`. */
static int64_t count_of(const char *text, int64_t most)
{
    char *end;
    const long long number = strtoll(text, &end, 10);
    if (*end != '\0' || number < 1 || number > most) fail(USAGE, text, "not a number in range");
    return number;
}

static void *opened(const char *file)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) fail(UNAVAILABLE, "library", dlerror());
    return library;
}

/* A function of the library, into the pointer at `function`. */
static void find(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);
    if (address == NULL) fail(UNAVAILABLE, "function", dlerror());
    memcpy(function, &address, sizeof address);
}

/* Prints the file that a function is in: a name may have led to another one. */
static void print_file(const void *function)
{
    char path[PATH_MAX];
    void *address;
    Dl_info info;
    memcpy(&address, function, sizeof address);
    if (dladdr(address, &info) == 0) fail(UNAVAILABLE, "function", "in no file");
    printf("library %s\n", realpath(info.dli_fname, path) != NULL ? path : info.dli_fname);
}

/* Memory by malloc, so that its settings decide on pages; at a cache line. */
static void *memory(size_t bytes)
{
    void *block;
    if (posix_memalign(&block, 64, bytes) != 0) fail(UNAVAILABLE, "memory", "not enough");
    memset(block, 0, bytes);
    return block;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Timed passes: `pass` is called with `work` and the number of those before. */
struct timed {
    void (*pass)(void *work, int64_t number);
    void *work;
    int64_t done;
};

static double seconds_of(struct timed *timed, int64_t passes)
{
    const double start = seconds_now();
    for (int64_t i = 0; i < passes; i++) timed->pass(timed->work, timed->done++);
    return seconds_now() - start;
}

/* Seconds of a pass in the fastest of the repetitions, of 10 ms at least, after a warm-up. */
static double fastest_pass(int64_t repetitions, struct timed *timed)
{
    int64_t passes = 1;
    while (seconds_of(timed, passes) < 0.01) passes *= 2;
    double best = seconds_of(timed, passes);
    for (int64_t repetition = 1; repetition < repetitions; repetition++) {
        const double seconds = seconds_of(timed, passes);
        if (seconds < best) best = seconds;
    }
    return best / (double)passes;
}

#endif
