/* The pass pw_<PW_TYPE>_pass over elements of type PW_T, called PW_TYPE. The kernel's file PW_WORK defines it from:
 *   PW_OWN(vector)           a vector of elements, of the build's width
 *   PW_OWN(part)(p, k)       vector k of the line at p
 *   PW_OWN(put)(p, v)        store the vectors v of the line at p
 *   PW_OWN(every)(s)         a vector of the scalar s, with the type pw_vector but elements of PW_T
 * pw_bundle_types.h includes this file once per type. This file undefines the macros of the type. */
#define PW_OWN(what) PW_OWN_(PW_TYPE, what)
#define PW_OWN_(type, what) PW_OWN__(type, what)
#define PW_OWN__(type, what) pw_##type##_##what

typedef PW_T PW_OWN(one) __attribute__((may_alias));
typedef PW_T PW_OWN(many) __attribute__((vector_size(PW_VECTOR_BYTES), may_alias));
typedef PW_T PW_OWN(any) __attribute__((vector_size(PW_VECTOR_BYTES), aligned(sizeof(PW_T)), may_alias));
typedef PW_ONE_OR(PW_OWN(one), PW_OWN(many), PW_VECTOR_BYTES) PW_OWN(aligned);
typedef PW_ONE_OR(PW_OWN(one), PW_OWN(any), PW_VECTOR_BYTES) PW_OWN(vector);

PW_INLINE PW_OWN(vector) PW_OWN(part)(const double *p, int k)
{
    return ((const PW_OWN(vector) *)p)[k];
}

PW_INLINE void PW_OWN(put)(double *p, const PW_OWN(vector) *v)
{
#if PW_PAST_CACHES
    for (int k = 0; k < pw_line_vectors; k += PW_TOGETHER(PW_VECTOR_BYTES))
        PW_STREAM_BYTES(PW_OWN(aligned), PW_VECTOR_BYTES, p + k * pw_vector_doubles, v + k);
#else
    for (int k = 0; k < pw_line_vectors; k++) ((PW_OWN(vector) *)p)[k] = v[k];
#endif
}

PW_INLINE pw_vector PW_OWN(every)(double s)
{
    PW_T lane[PW_VECTOR_BYTES / sizeof(PW_T)];
    for (size_t l = 0; l < sizeof lane / sizeof *lane; l++) lane[l] = PW_NARROWED(PW_T, s);
    pw_vector v;
    __builtin_memcpy(&v, lane, sizeof v);
    return v;
}

#include PW_WORK

#undef PW_OWN
#undef PW_OWN_
#undef PW_OWN__
#undef PW_TYPE
#undef PW_T
