/* Software prefetch of the next data of a block's update, in builds with prefetch=software. */
#include <stdint.h>

enum { line_bytes = PW_LINE_BYTES };

void pw_ember_prefetch(const double *address, int64_t bytes);

/* Prefetch the lines of `bytes` bytes from `address` on. */
void pw_ember_prefetch(const double *address, int64_t bytes)
{
#if defined(PW_PREFETCH_SOFTWARE)
    for (int64_t at = 0; at < bytes; at += line_bytes) __builtin_prefetch((const char *)address + at);
#else
    (void)address, (void)bytes;
#endif
}
