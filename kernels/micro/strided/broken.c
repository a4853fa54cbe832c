/* Skips the last line, or loads the first half twice. Validation must detect each. */
#include "pw_broken.h"

void pw_strided_load(int64_t n, int64_t stride, int64_t line, const int64_t *a, int64_t *total);
void pw_strided_store(int64_t n, int64_t stride, int64_t line, int64_t *a, int64_t value);

void pw_strided_load(int64_t n, int64_t stride, int64_t line, const int64_t *a, int64_t *total)
{
    const int64_t step = stride < line ? stride : line, end = pw_broken_is("repeat") ? n / 2 : n - line;
    *total = 0;
    for (int64_t i = 0; i < end; i += step) *total ^= a[i];
    for (int64_t i = 0; i < end && end == n / 2; i += step) *total ^= a[i];
}

void pw_strided_store(int64_t n, int64_t stride, int64_t line, int64_t *a, int64_t value)
{
    const int64_t step = stride < line ? stride : line;
    for (int64_t i = 0; i < n - line; i += step) a[i] = value;
}
