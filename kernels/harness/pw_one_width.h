/* The vocabulary of vectors of PW_BYTES bytes (0: a single element; -1: SVE's length) of elements of type PW_T, called PW_TYPE, and
 * then PW_TEMPLATE, which uses it: PW_OWN(what) is a name of this type and width, as PW_OWN(vector). PW_TARGET belongs to
 * functions. pw_each_width.h includes this file once per width. */
#define PW_OWN(label) PW_JOINED(PW_TYPE, PW_WIDTH, label)
#if PW_BYTES == 64
#define PW_TARGET PW_WIDE
#else
#define PW_TARGET
#endif

#if PW_BYTES < 0
typedef PW_JOINED(PW_TYPE, sve, vector) PW_OWN(vector);
PW_INLINE int64_t PW_OWN(lanes)(void) { return (int64_t)(svcntb() / sizeof(PW_T)); }
PW_INLINE PW_OWN(vector) PW_OWN(load)(const PW_T *p) { return svld1(svptrue_b8(), p); }
PW_INLINE void PW_OWN(store)(PW_T *p, PW_OWN(vector) v) { svst1(svptrue_b8(), p, v); }
PW_INLINE PW_OWN(vector) PW_OWN(broadcast)(PW_T s) { return PW_JOINED(PW_TYPE, sve, broadcast)(s); }
PW_INLINE PW_OWN(vector) PW_OWN(hide)(PW_OWN(vector) v) { __asm__ volatile("" : "+w"(v)); return v; }
PW_INLINE PW_OWN(vector) PW_OWN(fma)(PW_OWN(vector) x, PW_OWN(vector) a, PW_OWN(vector) b)
{
    return svmad_x(svptrue_b8(), x, a, b);
}
#else
#if PW_BYTES == 0
typedef PW_T PW_OWN(vector);
typedef PW_T PW_OWN(memory);
#else
typedef PW_T PW_OWN(vector) __attribute__((vector_size(PW_BYTES)));
typedef PW_T PW_OWN(memory) __attribute__((vector_size(PW_BYTES), aligned(sizeof(PW_T)), may_alias));
#endif
/* Number of elements; load and store; all elements equal; equal, but the compiler does not know that; x*a + b. */
PW_INLINE int64_t PW_OWN(lanes)(void) { return PW_BYTES == 0 ? 1 : PW_BYTES / (int64_t)sizeof(PW_T); }
PW_INLINE PW_TARGET PW_OWN(vector) PW_OWN(load)(const PW_T *p) { return *(const PW_OWN(memory) *)p; }
PW_INLINE PW_TARGET void PW_OWN(store)(PW_T *p, PW_OWN(vector) v) { *(PW_OWN(memory) *)p = v; }
PW_INLINE PW_TARGET PW_OWN(vector) PW_OWN(broadcast)(PW_T s) { return s - (PW_OWN(vector)){0}; }
PW_INLINE PW_TARGET PW_OWN(vector) PW_OWN(hide)(PW_OWN(vector) v) { PW_OPAQUE(v); return v; }
PW_INLINE PW_TARGET PW_OWN(vector) PW_OWN(fma)(PW_OWN(vector) x, PW_OWN(vector) a, PW_OWN(vector) b) { return x * a + b; }
#endif

#include PW_TEMPLATE

#undef PW_OWN
#undef PW_TARGET
#undef PW_BYTES
#undef PW_WIDTH
