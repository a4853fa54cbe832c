/* A stand-in for IBM's MASSV: its interface, by the C library's functions. */
#define _GNU_SOURCE
#include <math.h>

#define EACH(DO) DO(exp) DO(log) DO(sin) DO(cos) DO(tan) DO(sqrt) DO(cbrt) DO(log10)
#define OF_ONE(name, type, call, f)                                                                                             \
    void call##name(type *y, const type *x, const int *n);                                                                      \
    void call##name(type *y, const type *x, const int *n)                                                                       \
    {                                                                                                                           \
        for (int i = 0; i < *n; i++) y[i] = name##f(x[i]);                                                                      \
    }
#define BOTH_OF_ONE(name) OF_ONE(name, double, v, ) OF_ONE(name, float, vs, f)
#define OF_TWO(name, type, call, f)                                                                                             \
    void call##name(type *y, const type *x, const type *z, const int *n);                                                       \
    void call##name(type *y, const type *x, const type *z, const int *n)                                                        \
    {                                                                                                                           \
        for (int i = 0; i < *n; i++) y[i] = name##f(x[i], z[i]);                                                                \
    }
#define BOTH_OF_TWO(name) OF_TWO(name, double, v, ) OF_TWO(name, float, vs, f)

EACH(BOTH_OF_ONE)
BOTH_OF_TWO(pow)
BOTH_OF_TWO(atan2)
