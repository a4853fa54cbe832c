/* Which of Flash-X's timers and Profiler calls are measured regions: those in PAGEWISE_REGIONS, a comma-separated list of
   names (default: the calls of Hydro and of the equation of state, as in Feldman et al., PEARC '23).

   Flash-X names its computations only in calls of Timers_start and Timers_stop, and has no timer for the equation of state
   inside Hydro. The linker redirects these calls, and those of Eos_multiDim, here:
   -Wl,--wrap=timers_startstring_,--wrap=timers_stopstring_,--wrap=eos_multidim_. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "region.h"

static const char default_regions[] = "Hydro,Eos_multiDim";

/* The list. Timers run before Profiler_init, and on several threads, which all store the same. */
static const char *selection(void)
{
    static const char *_Atomic list;
    if (list == NULL) {
        const char *set = getenv("PAGEWISE_REGIONS");
        list = set != NULL ? set : default_regions;
    }
    return list;
}

/* Whether the list contains the name exactly. */
static int is_selected(const char *name, size_t length)
{
    for (const char *item = selection();; item++) {
        size_t n = strcspn(item, ",");
        if (n == length && memcmp(item, name, n) == 0) return 1;
        item += n;
        if (*item == '\0') return 0;
    }
}

static void call_with(int32_t (*change)(const char *), const char *name, size_t length)
{
    char text[PW_REGION_NAME + 1]; /* one more than a name may have, so that the library refuses a longer one */
    if (length == 0 || !is_selected(name, length)) return;
    if (length >= sizeof text) length = sizeof text - 1;
    memcpy(text, name, length);
    text[length] = '\0';
    change(text);
}

void pr_region_begin(const char *name, size_t length)
{
    call_with(pw_region_begin_named, name, length);
}

void pr_region_end(const char *name, size_t length)
{
    call_with(pw_region_end_named, name, length);
}

/* Fortran's procedures, with the length of the text as their last argument. */
void __real_timers_startstring_(const char *name, size_t length);
void __real_timers_stopstring_(const char *name, size_t length);

static size_t trimmed(const char *name, size_t length)
{
    while (length > 0 && name[length - 1] == ' ') length--;
    return length;
}

/* The timer runs outside of the region, so that its cost is not counted in it. */
void __wrap_timers_startstring_(const char *name, size_t length)
{
    __real_timers_startstring_(name, length);
    pr_region_begin(name, trimmed(name, length));
}

void __wrap_timers_stopstring_(const char *name, size_t length)
{
    pr_region_end(name, trimmed(name, length));
    __real_timers_stopstring_(name, length);
}

/* Eos_multiDim(mode, range, solnData), which all units call for the cells of a block: three addresses, the last one that of
   a Fortran pointer. */
void __real_eos_multidim_(const int32_t *mode, const int32_t *range, void *cells);

void __wrap_eos_multidim_(const int32_t *mode, const int32_t *range, void *cells)
{
    static const char name[] = "Eos_multiDim";
    pr_region_begin(name, sizeof name - 1);
    __real_eos_multidim_(mode, range, cells);
    pr_region_end(name, sizeof name - 1);
}
