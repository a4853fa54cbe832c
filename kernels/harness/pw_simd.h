/* Widths of vectors, in the order of --simd. */
#ifndef PAGEWISE_SIMD_H
#define PAGEWISE_SIMD_H

/* compiler: as the build's flags make it; vla: of a length that only the processor knows (SVE). */
enum { PW_SIMD_COMPILER = 1, PW_SIMD_SCALAR, PW_SIMD_128, PW_SIMD_256, PW_SIMD_512, PW_SIMD_VLA };

#endif
