/* The timed kernel: unew = ((u(i+1) + u(i-1))*h1 + (u(j+1) + u(j-1))*h2 + (u(k+1) + u(k-1))*h3 - rhs) * h. */
#ifndef PAGEWISE_STENCIL_H
#define PAGEWISE_STENCIL_H

#include <stdint.h>

/* points: nx, ny, and the number of planes to process, of nx * ny points, whose edges stay unchanged; u, rhs and unew start
 * with the plane before these. The rows of a plane are processed in blocks of `rows`, all planes of a block before the next
 * block. distance: of software prefetches, in elements. h: the factors h1, h2, h3 and h. */
void pw_stencil7(const int64_t points[], int64_t rows, int64_t distance, const double h[], const double u[], const double rhs[],
                 double unew[]);

#endif
