/* PW_TEMPLATE, a file, once per SIMD width of this build, for elements of type PW_T, called PW_TYPE; with PW_WITH_VLA also for
 * vectors whose length only the processor knows (SVE). It undefines PW_T and PW_TYPE. See pw_one_width.h. */
#define PW_WIDTH scalar
#define PW_BYTES 0
#include "pw_one_width.h"
#define PW_WIDTH 128
#define PW_BYTES 16
#include "pw_one_width.h"
#if defined(PW_HAS_256)
#define PW_WIDTH 256
#define PW_BYTES 32
#include "pw_one_width.h"
#endif
#if defined(PW_HAS_512)
#define PW_WIDTH 512
#define PW_BYTES 64
#include "pw_one_width.h"
#endif
#if defined(__ARM_FEATURE_SVE) && defined(PW_WITH_VLA)
#define PW_WIDTH vla
#define PW_BYTES (-1)
#include "pw_one_width.h"
#endif
#undef PW_T
#undef PW_TYPE
