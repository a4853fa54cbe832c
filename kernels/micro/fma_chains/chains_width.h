/* The chains in vectors of one width: see kernel.c. */
#define TAKE(k, f) if (k < n) from[k] = PW_OWN(load)(x + k * lanes), sum[k] = PW_OWN(broadcast)(c[fmas]);
#define PUT(k, f) if (k < n) PW_OWN(store)(y + k * lanes, sum[k]);
#define ADVANCE(k, f) if (k < n) sum[k] = PW_OWN(hide)(PW_OWN(fma)(from[k], sum[k], PW_OWN(broadcast)(c[f])));
#define STEP(f) if (f < fmas) { PW_EIGHT(ADVANCE, f) }

/* The work on n vectors, one chain each, step by step for all. Sums are opaque in between, so that scalars stay scalar. */
PW_INLINE PW_TARGET void PW_OWN(rows)(int n, int fmas, const double *c, const double *x, double *y)
{
    const int64_t lanes = PW_OWN(lanes)();
    PW_OWN(vector) from[8], sum[8];
    PW_EIGHT(TAKE, 0)
    STEP(8) STEP(7) STEP(6) STEP(5) STEP(4) STEP(3) STEP(2) STEP(1) STEP(0)
    PW_EIGHT(PUT, 0)
}

/* All rows, n vectors at once. */
PW_INLINE PW_TARGET void PW_OWN(all)(int n, int fmas, int64_t rows, int64_t distance, const double *c, double *y)
{
    const int64_t lanes = PW_OWN(lanes)(), all = rows * chains_row;
    const double *x = y - distance * chains_row;
    int64_t i = 0;
    double own[chains_longest + 1];
    for (int f = 0; f <= chains_longest; f++) own[f] = c[f];
    for (; n > 1 && i + n * lanes <= all; i += n * lanes) PW_OWN(rows)(n, fmas, own, x + i, y + i);
    for (; i < all; i += lanes) PW_OWN(rows)(1, fmas, own, x + i, y + i);
}

#define CASE(f, n) case f + (chains_longest + 1) * n: PW_OWN(all)(n, f, rows, distance, c, y); break;
#if PW_CHAINS_MOST == 8
#define CASES(f) CASE(f, 1) CASE(f, 2) CASE(f, 4) CASE(f, 8)
#else
#define CASES(f) CASE(f, 1) CASE(f, 2) CASE(f, 4)
#endif
static PW_TARGET int32_t PW_OWN(run)(int64_t n, int64_t fmas, int64_t rows, int64_t distance, const double *c, double *y)
{
    switch ((int)fmas + (chains_longest + 1) * (int)n) {
        CASES(1) CASES(2) CASES(3) CASES(4) CASES(5) CASES(6) CASES(7) CASES(8) CASES(9)
    }
    return 0;
}

#undef TAKE
#undef PUT
#undef ADVANCE
#undef STEP
#undef CASE
#undef CASES
