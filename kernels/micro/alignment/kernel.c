/* In C, because Fortran arrays have no addresses inside an element. Processes blocks of 128 bytes, so that every width has
 * at least two vectors in flight; the barrier after it keeps compilers from generating a call of memcpy or other widths. */
#include "alignment.h"

enum { block = 128 };

#if defined(__clang__)
#define WIDTH(bits) __attribute__((min_vector_width(bits))) /* the flags of a build prefer 256 bits */
#else
#define WIDTH(bits)
#endif

#define ACCESSES(bits)                                                                                                  \
    typedef int64_t vector_##bits __attribute__((vector_size(bits / 8), aligned(1), may_alias));                        \
                                                                                                                        \
    WIDTH(bits) static void copy_##bits(int64_t n, char *to, const char *from)                                          \
    {                                                                                                                   \
        for (int64_t i = 0; i < n; i += block) {                                                                        \
            for (int k = 0; k < block; k += bits / 8)                                                                   \
                *(vector_##bits *)(to + i + k) = *(const vector_##bits *)(from + i + k);                                \
            __asm__ volatile("" ::: "memory");                                                                          \
        }                                                                                                               \
    }                                                                                                                   \
                                                                                                                        \
    WIDTH(bits) static int64_t load_##bits(int64_t n, const char *from)                                                 \
    {                                                                                                                   \
        vector_##bits sum[block * 8 / bits];                                                                            \
        for (int k = 0; k < block * 8 / bits; k++) sum[k] = (vector_##bits){0};                                         \
        for (int64_t i = 0; i < n; i += block)                                                                          \
            for (int k = 0; k < block * 8 / bits; k++) sum[k] ^= *(const vector_##bits *)(from + i + k * (bits / 8));   \
        int64_t total = 0;                                                                                              \
        for (int k = 0; k < block * 8 / bits; k++)                                                                      \
            for (int j = 0; j < bits / 64; j++) total ^= sum[k][j];                                                     \
        return total;                                                                                                   \
    }                                                                                                                   \
                                                                                                                        \
    WIDTH(bits) static void store_##bits(int64_t n, char *to, int64_t value)                                            \
    {                                                                                                                   \
        vector_##bits values = value - (vector_##bits){0};                                                              \
        for (int64_t i = 0; i < n; i += block) {                                                                        \
            for (int k = 0; k < block; k += bits / 8) *(vector_##bits *)(to + i + k) = values;                          \
            __asm__ volatile("" ::: "memory");                                                                          \
        }                                                                                                               \
    }                                                                                                                   \
                                                                                                                        \
    static int64_t run_##bits(int64_t access, int64_t n, char *to, const char *from, int64_t value, int64_t *total)     \
    {                                                                                                                   \
        if (access == alignment_copy) copy_##bits(n, to, from);                                                         \
        if (access == alignment_load) *total = load_##bits(n, from);                                                    \
        if (access == alignment_store) store_##bits(n, to, value);                                                      \
        return 1;                                                                                                       \
    }

#if defined(PW_HAS_512)
ACCESSES(512)
#endif
#if defined(PW_HAS_256)
ACCESSES(256)
#endif
ACCESSES(128)

int64_t pw_alignment(int64_t access, int64_t bits, int64_t n, char *to, const char *from, int64_t value, int64_t *total)
{
#if defined(PW_HAS_512)
    if (bits == 512) return run_512(access, n, to, from, value, total);
#endif
#if defined(PW_HAS_256)
    if (bits == 256) return run_256(access, n, to, from, value, total);
#endif
    return bits == 128 ? run_128(access, n, to, from, value, total) : 0;
}
