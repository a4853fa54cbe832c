/* One block after the other, each by the requested method. */
#include "copy.h"

#include <string.h>

void pw_copy_plain(int64_t n, double *target, const double *source);

/* Whole lines by vectors. The empty instruction keeps the compiler from replacing it by a call of memcpy. */
static void by_vectors(int64_t n, double *target, const double *source)
{
    struct pw_zeroing zero = pw_zero_begin(target, n, sizeof *target, 0);
    PW_NO_UNROLL
    for (int64_t i = 0; i < n; i += pw_line_doubles) {
        pw_zero_until(&zero, target + i + pw_line_doubles);
        __asm__ volatile("" : "+r"(target));
        pw_vector line[pw_line_vectors];
        for (int k = 0; k < pw_line_vectors; k++) line[k] = pw_load(source + i + k * pw_vector_doubles);
#ifdef PW_STORES_NONTEMPORAL
        pw_stream_line(target + i, line);
#else
        pw_store_line(target + i, line);
#endif
    }
}

static void by_string_move(int64_t n, double *target, const double *source)
{
#if defined(__x86_64__)
    size_t bytes = (size_t)n * sizeof *target;
    __asm__ volatile("rep movsb" : "+D"(target), "+S"(source), "+c"(bytes) : : "memory");
#else
    (void)n, (void)target, (void)source; /* the driver offers it on x86 only */
#endif
}

int64_t pw_copy(int64_t way, int64_t copies, int64_t n, int64_t place, int64_t stride, int64_t places, double *target,
                const double *source)
{
    for (int64_t i = 0; i < copies; i++) {
        double *to = target + place * n;
        const double *from = source + place * n;
        if (way == pw_copy_libc)
            memcpy(to, from, (size_t)n * sizeof *to);
        else if (way == pw_copy_loop)
            pw_copy_plain(n, to, from);
        else if (way == pw_copy_vector)
            by_vectors(n, to, from);
        else
            by_string_move(n, to, from);
        place = (place + stride) & (places - 1);
    }
#ifdef PW_STORES_NONTEMPORAL
    pw_stream_fence();
#endif
    return place;
}
