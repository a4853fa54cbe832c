/* The x of a block of entries are loaded before the first one is used. */
#include "spmv.h"

/* Load for the entries from `loaded` on, in whole blocks, until `wanted` are loaded. */
PW_INLINE int64_t preload(int64_t loaded, int64_t wanted, int64_t end, const int32_t *column, const double *x, int64_t block)
{
    while (loaded < wanted) {
        int64_t stop = loaded + block < end ? loaded + block : end;
        for (; loaded < stop; loaded++) pw_preload(x + column[loaded]);
    }
    return loaded;
}

void pw_spmv_crs(int64_t first, int64_t last, const int64_t *start, const int32_t *column, const double *value, const double *x,
                 double *y, int64_t tuning)
{
    int64_t loaded = start[first];
    for (int64_t i = first; i < last; i++) {
        loaded = preload(loaded, start[i + 1], start[last], column, x, tuning);
        y[i] = spmv_row(start[i], start[i + 1], column, value, x, 0);
    }
}

void pw_spmv_sell(int64_t first, int64_t last, int64_t chunk, const int64_t *start, const int32_t *order, const int32_t *column,
                  const double *value, const double *x, double *y, int64_t tuning)
{
    int64_t loaded = start[first];
    for (int64_t c = first; c < last; c++) {
        loaded = preload(loaded, start[c + 1], start[last], column, x, tuning);
        for (int64_t row = 0; row < chunk; row += lanes)
            spmv_lanes(start[c] + row, start[c + 1], chunk, order + c * chunk + row, column, value, x, y, 0);
    }
}
