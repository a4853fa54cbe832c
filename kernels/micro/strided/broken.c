/* Skips the last line: validation must detect it. */
#include <stdint.h>

void pw_strided_load(int64_t n, int64_t stride, int64_t line, const int64_t *a, int64_t *total);
void pw_strided_store(int64_t n, int64_t stride, int64_t line, int64_t *a, int64_t value);

void pw_strided_load(int64_t n, int64_t stride, int64_t line, const int64_t *a, int64_t *total)
{
    int64_t step = stride < line ? stride : line;
    *total = 0;
    for (int64_t i = 0; i < n - line; i += step) *total ^= a[i];
}

void pw_strided_store(int64_t n, int64_t stride, int64_t line, int64_t *a, int64_t value)
{
    int64_t step = stride < line ? stride : line;
    for (int64_t i = 0; i < n - line; i += step) a[i] = value;
}
