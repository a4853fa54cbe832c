/* The library that serves a program's calls. */
#ifndef PAGEWISE_COMPUTED_BY_H
#define PAGEWISE_COMPUTED_BY_H

#include <stdint.h>

/* The file, with symbolic links resolved, that provides `symbol` at run time: the library that was loaded, or the program
 * itself if it was linked statically. Empty if nothing provides the symbol. `length`: of `file` with its null character. */
void pw_library_of(const char *symbol, char *file, int32_t length);

/* Make the loaded libraries that have their own threads use one thread per call. */
void pw_one_thread_a_call(void);

/* The library that the program's OpenMP calls go to: the file, with symbolic links resolved; the library's name (DT_SONAME
 * without its version: libgomp, libomp); its newest interfaces, which show its version (OMP_5.1 GOMP_5.1); and its build ID,
 * which is unique. Empty if there is none. `length`: of each text with its null character. */
void pw_threads_runtime(char *file, char *name, char *interfaces, char *build, int32_t length);

#endif
