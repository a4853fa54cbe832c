/* Explicit code of every variant; loop.f90 is the plain loop of loop=compiler. */
#include "spmv.h"

#if defined(PW_LOOP_EXPLICIT)

struct matrix {
    const int32_t *column;
    const double *value, *x;
    int64_t tuning, loaded, end; /* block: entries whose x is loaded, and all entries */
};

PW_INLINE struct matrix matrix_of(const int64_t *extent, const int64_t *start, const int32_t *column, const double *value,
                                  const double *x)
{
    return (struct matrix){column, value, x, extent[spmv_tuning], start[0], start[extent[spmv_chunks]]};
}

PW_INLINE void prefetch(const struct matrix *a, int64_t entry)
{
#if defined(PW_PREFETCH_SOFTWARE)
    pw_prefetch_read(a->x + a->column[entry + a->tuning]);
#else
    (void)a, (void)entry;
#endif
}

/* Load the x of whole blocks of entries until those before `wanted` are loaded. */
PW_INLINE void preload(struct matrix *a, int64_t wanted)
{
#if defined(PW_PREFETCH_BLOCK)
    while (a->loaded < wanted) {
        const int64_t stop = a->loaded + a->tuning < a->end ? a->loaded + a->tuning : a->end;
        for (; a->loaded < stop; a->loaded++) pw_preload(a->x + a->column[a->loaded]);
    }
#else
    (void)a, (void)wanted;
#endif
}

/* The sum of value * x over entries. */
PW_INLINE double sum_of(const struct matrix *a, int64_t from, int64_t to)
{
    double total = 0;
    PW_NO_UNROLL
    for (int64_t k = from; k < to; k++) {
        prefetch(a, k);
        total += a->value[k] * a->x[a->column[k]];
    }
    return total;
}

/* The same for `lanes` rows, whose entries are adjacent, `rows` before the next ones. */
PW_INLINE void sums_of(const struct matrix *a, int64_t from, int64_t to, int64_t rows, const int32_t *order, double *y)
{
    double total[lanes] = {0};
    PW_NO_UNROLL
    for (int64_t k = from; k < to; k += rows) {
        for (int64_t r = 0; r < lanes; r++) prefetch(a, k + r);
        for (int64_t r = 0; r < lanes; r++) total[r] += a->value[k + r] * a->x[a->column[k + r]];
    }
    for (int64_t r = 0; r < lanes; r++) y[order[r]] = total[r];
}

void pw_spmv_crs(const int64_t *extent, const int64_t *start, const int32_t *column, const double *value, const double *x,
                 double *y)
{
    struct matrix a = matrix_of(extent, start, column, value, x);
    for (int64_t i = 0; i < extent[spmv_chunks]; i++) {
        preload(&a, start[i + 1]);
        y[i] = sum_of(&a, start[i], start[i + 1]);
    }
}

void pw_spmv_sell(const int64_t *extent, const int64_t *start, const int32_t *order, const int32_t *column, const double *value,
                  const double *x, double *y)
{
    const int64_t rows = extent[spmv_rows];
    struct matrix a = matrix_of(extent, start, column, value, x);
    for (int64_t c = 0; c < extent[spmv_chunks]; c++) {
        preload(&a, start[c + 1]);
        for (int64_t row = 0; row < rows; row += lanes)
            sums_of(&a, start[c] + row, start[c + 1], rows, order + c * rows + row, y);
    }
}

#endif
