/* Which library serves the program's threads: what it was linked with need not be what the dynamic linker loads. */
#ifndef PAGEWISE_OPENMP_RUNTIME_H
#define PAGEWISE_OPENMP_RUNTIME_H

#include <stdint.h>

/* Of the library whose functions calls of OpenMP go to: the file, as the kernel names what is mapped where they lie
 * (/proc/self/maps); the library's own name (DT_SONAME without its version: libgomp, libomp); its newest interfaces, which tell
 * its version (OMP_5.1 GOMP_5.1); and its build ID, which tells it from all others. Empty where there is none. `length`: of
 * each text with its null character. */
void pw_threads_runtime(char *file, char *name, char *interfaces, char *build, int32_t length);

#endif
