/* A library that uses dlsym and malloc in its constructor, before that of any preloaded library: ends the program unless
 * the message of a failed dlsym lasts until dlerror. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LENGTH = 2 << 20 };

__attribute__((constructor)) static void begin(void)
{
    for (int number = 0; number < 3; number++) dlsym(RTLD_DEFAULT, "no_such_symbol");
    free(malloc(LENGTH));
    munmap(mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), LENGTH);
    if (sbrk(0) == (void *)-1 || !dlerror()) _exit(9);
}
