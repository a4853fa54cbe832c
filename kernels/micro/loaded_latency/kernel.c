/* In C for the addresses of the chase, the non-temporal stores, and a flag that threads share. */
#include "loaded_latency.h"
#include "pw_chase_loop.h"
#include "pw_widths.h"
#include "pw_zero.h"

#include <string.h>

PW_CHASE(1)

void pw_chase_and_stop(int64_t hops, pw_link **at, int32_t *stop)
{
    chase_1(hops, at);
    __atomic_store_n(stop, 1, __ATOMIC_RELEASE);
}

typedef uint64_t many_words __attribute__((vector_size(PW_VECTOR_BYTES)));
typedef PW_ONE_OR(uint64_t, many_words, PW_VECTOR_BYTES) words;

/* Nothing beyond the line is zeroed: it would be lost if this store is the last. */
PW_INLINE void store_line(struct pw_zeroing *zero, words *line, words value)
{
    const words both[2] = {value, value};
    zero->next = (char *)line;
    zero->end = (char *)(line + pw_line_vectors);
    pw_zero_until(zero, zero->end);
    PW_UNROLL
#ifdef PW_STORES_NONTEMPORAL
    for (int k = 0; k < pw_line_vectors; k += PW_TOGETHER(PW_VECTOR_BYTES))
        PW_STREAM_BYTES(words, PW_VECTOR_BYTES, line + k, both);
#else
    for (int k = 0; k < pw_line_vectors; k++) line[k] = both[0];
#endif
}

PW_INLINE void wait_iterations(int64_t delay)
{
    PW_NO_UNROLL
    for (; delay > 0; delay--) __asm__ volatile("");
}

void pw_load_until(const int32_t *stop, void *line, int64_t groups, int64_t reads, int64_t writes, int64_t delay,
                   struct pw_load_done *done)
{
    const words *source = line;
    words *target = (words *)line + groups * reads * pw_line_vectors;
    int64_t count = done->groups, at = count % groups;
    words sum = {0};
    struct pw_zeroing zero = pw_zero_begin(target, groups * writes * pw_line_vectors, sizeof(words), 0);
    do {
        PW_NO_UNROLL
        for (int64_t r = at * reads; r < (at + 1) * reads; r++) {
            PW_UNROLL
            for (int k = 0; k < pw_line_vectors; k++) sum += source[r * pw_line_vectors + k];
            wait_iterations(delay);
        }
        count++;
        PW_NO_UNROLL
        for (int64_t w = at * writes; w < (at + 1) * writes; w++) {
            store_line(&zero, target + w * pw_line_vectors, (uint64_t)count + (words){0});
            wait_iterations(delay);
        }
        if (++at == groups) at = 0;
    } while (!__atomic_load_n(stop, __ATOMIC_RELAXED));
#ifdef PW_STORES_NONTEMPORAL
    pw_stream_fence();
#endif
    done->groups = count;
    uint64_t word[pw_vector_doubles];
    memcpy(word, &sum, sizeof word);
    for (int k = 0; k < pw_vector_doubles; k++) done->sum += word[k];
}
