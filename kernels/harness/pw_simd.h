/* SIMD widths, in the order of --simd. */
#ifndef PAGEWISE_SIMD_H
#define PAGEWISE_SIMD_H

/* compiler: set by the build's flags; vla: vectors whose length only the processor knows (SVE). */
enum { PW_SIMD_COMPILER = 1, PW_SIMD_SCALAR, PW_SIMD_128, PW_SIMD_256, PW_SIMD_512, PW_SIMD_VLA };

#endif
