/* In C, because Fortran arrays have no addresses inside an element. Four accesses per iteration, to keep the loop overhead
   small. */
#include "crossing.h"
#include "pw_widths.h"

enum { apart = 4096 };

/* The sum is opaque, so that every access is executed. */
#define KEEP(v) __asm__ volatile("" : "+r"(v)::"memory")
#define KEEP_VECTOR(v)                   \
    do {                                 \
        PW_OPAQUE(v);                    \
        __asm__ volatile("" ::: "memory"); \
    } while (0)

#define EACH_FOUR                                                                                                               \
    for (char *at = first; at < first + places * apart; at += 4 * apart)                                                        \
        for (int64_t round = 0; round < rounds; round++)

#define DEFINE_ACCESSES(name, V, words, keep, width_attribute)                                                                  \
    typedef V name##_word __attribute__((aligned(1), may_alias));                                                               \
    static width_attribute int32_t name(int32_t access, int64_t rounds, int64_t places, char *first, int64_t value,             \
                                        int64_t *total)                                                                         \
    {                                                                                                                           \
        union {                                                                                                                 \
            V all;                                                                                                              \
            int64_t word[words];                                                                                                \
        } sum, stored;                                                                                                          \
        for (int k = 0; k < words; k++) sum.word[k] = 0, stored.word[k] = value;                                                \
        const V every = stored.all;                                                                                             \
        V a = sum.all, b = a, c = a, d = a;                                                                                     \
        for (int k = 0; k < words; k++) stored.word[k] = 1;                                                                     \
        const V one = stored.all;                                                                                               \
        if (access == crossing_forward)                                                                                         \
            for (int64_t round = 0; round < rounds * places; round++) {                                                         \
                *(name##_word *)first += one;                                                                                   \
                __asm__ volatile("" ::: "memory");                                                                              \
            }                                                                                                                   \
        if (access == crossing_load)                                                                                            \
            EACH_FOUR                                                                                                           \
            {                                                                                                                   \
                a += *(const name##_word *)at;                                                                                  \
                b += *(const name##_word *)(at + apart);                                                                        \
                c += *(const name##_word *)(at + 2 * apart);                                                                    \
                d += *(const name##_word *)(at + 3 * apart);                                                                    \
                keep(a);                                                                                                        \
                keep(b);                                                                                                        \
                keep(c);                                                                                                        \
                keep(d);                                                                                                        \
            }                                                                                                                   \
        if (access == crossing_store)                                                                                           \
            EACH_FOUR                                                                                                           \
            {                                                                                                                   \
                *(name##_word *)at = every;                                                                                     \
                *(name##_word *)(at + apart) = every;                                                                           \
                *(name##_word *)(at + 2 * apart) = every;                                                                       \
                *(name##_word *)(at + 3 * apart) = every;                                                                       \
                __asm__ volatile("" ::: "memory");                                                                              \
            }                                                                                                                   \
        sum.all = a + b + c + d;                                                                                                \
        for (int k = 0; k < words; k++) *total += sum.word[k];                                                                  \
        return 0;                                                                                                               \
    }

typedef int64_t vector_128 __attribute__((vector_size(16)));
typedef int64_t vector_256 __attribute__((vector_size(32)));
typedef int64_t vector_512 __attribute__((vector_size(64)));

DEFINE_ACCESSES(scalar, int64_t, 1, KEEP, )
DEFINE_ACCESSES(by_128, vector_128, 2, KEEP_VECTOR, )
PW_IF_256(DEFINE_ACCESSES(by_256, vector_256, 4, KEEP_VECTOR, ))
PW_IF_512(DEFINE_ACCESSES(by_512, vector_512, 8, KEEP_VECTOR, PW_WIDE))

int32_t pw_crossing(int32_t access, int32_t simd, int64_t rounds, int64_t places, char *first, int64_t value, int64_t *total)
{
    switch (simd) {
    case PW_SIMD_SCALAR: return scalar(access, rounds, places, first, value, total);
    case PW_SIMD_128: return by_128(access, rounds, places, first, value, total);
        PW_IF_256(case PW_SIMD_256 : return by_256(access, rounds, places, first, value, total);)
        PW_IF_512(case PW_SIMD_512 : return by_512(access, rounds, places, first, value, total);)
    default: return 1;
    }
}
