/* Elements of any kernel type, to and from doubles; for the driver, outside of timed code. */
#include "pw_stream_call.h"

#define PUT(T) for (int64_t i = 0; i < n; i++) ((T *)array)[first + i] = PW_NARROWED(T, values[i])
#define GET(T) for (int64_t i = 0; i < n; i++) values[i] = (double)((const T *)array)[first + i]

#if defined(PW_HAS_FP16)
#define FP16(WORK) WORK(pw_half)
#else
#define FP16(WORK) return PW_STREAM_NO_TYPE
#endif
#if defined(PW_HAS_BF16)
#define BF16(WORK) WORK(pw_brain)
#else
#define BF16(WORK) return PW_STREAM_NO_TYPE
#endif

#define FOR_TYPE(WORK)                                                                                                          \
    switch (type) {                                                                                                             \
    case PW_FP64: WORK(double); break;                                                                                          \
    case PW_FP32: WORK(float); break;                                                                                           \
    case PW_FP16: FP16(WORK); break;                                                                                            \
    case PW_BF16: BF16(WORK); break;                                                                                            \
    case PW_INT64: WORK(int64_t); break;                                                                                        \
    case PW_INT32: WORK(int32_t); break;                                                                                        \
    case PW_INT16: WORK(int16_t); break;                                                                                        \
    case PW_INT8: WORK(int8_t); break;                                                                                          \
    default: return PW_STREAM_NO_TYPE;                                                                                          \
    }                                                                                                                           \
    return PW_STREAM_OK

int32_t pw_elements_put(int32_t type, void *array, int64_t first, int64_t n, const double *values)
{
    FOR_TYPE(PUT);
}

int32_t pw_elements_get(int32_t type, const void *array, int64_t first, int64_t n, double *values)
{
    FOR_TYPE(GET);
}
