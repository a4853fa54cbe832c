/* The operations on one type in one width: see kernel.c. */
#define V PW_OWN(vector)
#define VB PW_OWN(bits)
#define VF PW_OWN(singles)
#define VI PW_OWN(words)
#if PW_BYTES == 0
#define LANES 1
#else
#define LANES (PW_BYTES * 8 / BITS)
#endif

/* Operations: for scalars in C, for vectors by the processor's intrinsics. */
#if PW_BYTES == 0
#define MIN(x) ((x) < a ? (x) : a)
#define MAX(x) ((x) > a ? (x) : a)
#if FLOATING && BITS == 64
#define ROOT(x) (__builtin_sqrt(x) + a)
#define ABS(x) __builtin_fabs(x)
#define SIGN(x) __builtin_copysign(x, a)
#elif FLOATING
#define ROOT(x) (__builtin_sqrtf(x) + a)
#define ABS(x) __builtin_fabsf(x)
#define SIGN(x) __builtin_copysignf(x, a)
#else
#define ABS(x) ((x) < 0 ? -(x) : (x))
#endif
/* The way back is hidden, because GCC fuses both into a rounding. */
#define THERE_AND_BACK(x, through, constraint)                                                                                  \
    __extension__({                                                                                                             \
        through there = (through)(x);                                                                                           \
        __asm__ volatile("" : constraint(there));                                                                               \
        (V) there;                                                                                                              \
    })
#undef VF
#undef VI
#define VF float
#define VI int32_t
#define VQ int64_t
#else
#define THERE_AND_BACK(x, through, constraint) __builtin_convertvector(__builtin_convertvector(x, through), V)
#if FLOATING
typedef B VB __attribute__((vector_size(PW_BYTES)));
typedef int32_t VI __attribute__((vector_size(LANES * 4)));
#define ABS(x) ((V)((VB)(x) & magnitude))
#define SIGN(x) ((V)(((VB)(x) & magnitude) | ((VB)a & ~magnitude)))
#if BITS == 64
typedef float VF __attribute__((vector_size(LANES * 4)));
#define VQ VB
#endif
#endif
#if defined(__x86_64__)
#if PW_BYTES == 16
#define MM(name) _mm_##name
#elif PW_BYTES == 32
#define MM(name) _mm256_##name
#else
#define MM(name) _mm512_##name
#endif
#if FLOATING && BITS == 64
#define ROOT(x) (MM(sqrt_pd)(x) + a)
#define MIN(x) MM(min_pd)(x, a)
#define MAX(x) MM(max_pd)(x, a)
#elif FLOATING
#define ROOT(x) (MM(sqrt_ps)(x) + a)
#define MIN(x) MM(min_ps)(x, a)
#define MAX(x) MM(max_ps)(x, a)
#elif BITS == 64 && (defined(__AVX512VL__) || PW_BYTES == 64)
#define MIN(x) (V)MM(min_epi64)(AS_REGISTER(x), AS_REGISTER(a))
#define MAX(x) (V)MM(max_epi64)(AS_REGISTER(x), AS_REGISTER(a))
#define ABS(x) (V)MM(abs_epi64)(AS_REGISTER(x))
#elif BITS == 32 && defined(__SSE4_1__)
#define MIN(x) (V)MM(min_epi32)(AS_REGISTER(x), AS_REGISTER(a))
#define MAX(x) (V)MM(max_epi32)(AS_REGISTER(x), AS_REGISTER(a))
#define ABS(x) (V)MM(abs_epi32)(AS_REGISTER(x))
#endif
#if PW_BYTES == 16
#define AS_REGISTER(x) (__m128i)(x)
#elif PW_BYTES == 32
#define AS_REGISTER(x) (__m256i)(x)
#else
#define AS_REGISTER(x) (__m512i)(x)
#endif
#elif defined(__clang__)
#define MIN(x) __builtin_elementwise_min(x, a)
#define MAX(x) __builtin_elementwise_max(x, a)
#if FLOATING
#define ROOT(x) (__builtin_elementwise_sqrt(x) + a)
#else
#define ABS(x) __builtin_elementwise_abs(x)
#endif
#endif
#endif

#if PW_BYTES == 0 && !FLOATING
#define HIDE(v) __asm__ volatile("" : "+r"(v))
#define CHAINS 8 /* of integers in general registers */
#define GROUP_OF PW_EIGHT
#else
#define HIDE(v) PW_OPAQUE(v)
#define CHAINS pw_group
#define GROUP_OF PW_GROUP
#endif

static PW_TARGET int32_t PW_OWN(run)(struct arithmetic_call *call)
{
    enum { lanes = LANES };
    PW_T *p = call->x;
    PW_T s = (PW_T)call->a;
#if FLOATING
    V one = 1 - (V){0};
    HIDE(one);
#if PW_BYTES > 0
    const VB magnitude = ~((VB){0} + (B)(UINT64_C(1) << (BITS - 1)));
#endif
#endif
    switch (call->operation) {
        CASE(arithmetic_add, ADD)
        CASE(arithmetic_sub, SUB)
        CASE(arithmetic_mul, MUL)
        CASE(arithmetic_div, DIV)
#if defined(ROOT)
        CASE(arithmetic_sqrt, ROOT)
#endif
#if FLOATING
        CASE(arithmetic_fma, FMA)
        CASE(arithmetic_sign, SIGN)
#define THROUGH_INT32(x) THERE_AND_BACK(x, VI, "+r")
        CASE(arithmetic_to_int32, THROUGH_INT32)
#if BITS == 64
#define THROUGH_FP32(x) THERE_AND_BACK(x, VF, PW_IN_VECTOR)
#define THROUGH_INT64(x) THERE_AND_BACK(x, VQ, "+r")
        CASE(arithmetic_to_fp32, THROUGH_FP32)
        CASE(arithmetic_to_int64, THROUGH_INT64)
#endif
#endif
#if defined(MIN)
        CASE(arithmetic_min, MIN)
        CASE(arithmetic_max, MAX)
#endif
#if defined(ABS)
        CASE(arithmetic_abs, ABS)
#endif
    default: return arithmetic_none;
    }
}

#undef V
#undef VB
#undef VF
#undef VI
#undef VQ
#undef LANES
#undef ROOT
#undef MIN
#undef MAX
#undef ABS
#undef SIGN
#undef MM
#undef AS_REGISTER
#undef THERE_AND_BACK
#undef THROUGH_INT32
#undef THROUGH_FP32
#undef THROUGH_INT64
#undef HIDE
#undef CHAINS
#undef GROUP_OF
