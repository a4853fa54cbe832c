/* A touch that skips the last page: validation must detect it. */
#include "place.h"

void pw_place_touch(void *start, int64_t page, int64_t first, int64_t last)
{
    for (int64_t i = first; i < last - 1; i++) *(int64_t *)(void *)((char *)start + i * page) = i + 1;
}
