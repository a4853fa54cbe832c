/* First touch: one store per base page, whatever pages the policy makes the kernel place. */
#include "place.h"

void pw_place_touch(void *start, int64_t page, int64_t first, int64_t last)
{
    for (int64_t i = first; i < last; i++) *(volatile int64_t *)(void *)((char *)start + i * page) = i + 1;
}
