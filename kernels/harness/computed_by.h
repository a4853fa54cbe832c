/* Which library a program's calls go to. */
#ifndef PAGEWISE_COMPUTED_BY_H
#define PAGEWISE_COMPUTED_BY_H

#include <stdint.h>

/* The file, its links followed, of what `symbol` is at run time: the library that was loaded, or the program itself where it
 * was linked statically. Empty where nothing has the symbol. `length`: of `file` with its null character. */
void pw_library_of(const char *symbol, char *file, int32_t length);

/* Tell the libraries that are loaded and have threads of their own to take one for each call. */
void pw_one_thread_a_call(void);

#endif
