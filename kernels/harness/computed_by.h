/* The library that serves a program's calls. */
#ifndef PAGEWISE_COMPUTED_BY_H
#define PAGEWISE_COMPUTED_BY_H

#include <stdint.h>

/* The file, with symbolic links resolved, that provides `symbol` at run time: the library that was loaded, or the program
 * itself if it was linked statically. Empty if nothing provides the symbol. `length`: of `file` with its null character. */
void pw_library_of(const char *symbol, char *file, int32_t length);

/* Make the loaded libraries that have their own threads use one thread per call. */
void pw_one_thread_a_call(void);

#endif
