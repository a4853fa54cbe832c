/* The library that serves the program's threads: the dynamic linker may load another one than the program was linked with. */
#ifndef PAGEWISE_OPENMP_RUNTIME_H
#define PAGEWISE_OPENMP_RUNTIME_H

#include <stdint.h>

/* The library that the program's OpenMP calls go to: the file, with symbolic links resolved; the library's name (DT_SONAME
 * without its version: libgomp, libomp); its newest interfaces, which show its version (OMP_5.1 GOMP_5.1); and its build ID,
 * which is unique. Empty if there is none. `length`: of each text with its null character. */
void pw_threads_runtime(char *file, char *name, char *interfaces, char *build, int32_t length);

#endif
