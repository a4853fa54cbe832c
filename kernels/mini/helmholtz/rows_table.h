/* The table of rows.c: the cells of zones, and the interpolation in them. Part of one translation unit, so that all is inlined. */
#ifndef PW_HELMHOLTZ_ROWS_TABLE_H
#define PW_HELMHOLTZ_ROWS_TABLE_H

#include "rows.h"

#include "vectors.h"

#include <stdalign.h>
#include <stdbool.h>
#include <string.h>

enum {
    chunk = 64,               /* zones whose intermediate results fit together into the L1 cache */
    groups = chunk / lanes,
    node = 9, node_positrons = 4,
    most_iterations = 120
};

/* A column of a chunk. */
#define COLUMN alignas(64) double
typedef const struct pw_helmholtz_table table_t;

/* Derived from composition, density and temperature only. */
struct place {
    COLUMN dens[chunk], temp[chunk], abar[chunk], zbar[chunk];
    COLUMN part_u[chunk], part_v[chunk];      /* position in its cell of the table, from 0 to 1 */
    COLUMN ln_coupling[chunk], ln_phase[chunk]; /* of Gamma, of the argument of the Sackur-Tetrode formula */
    COLUMN ln_temp[chunk];
    alignas(64) int64_t cold[chunk];          /* start of the cell in the table of the cold part */
    alignas(64) int64_t cell[chunk];          /* the number of the cell's first node */
};

/* The table's values of the electrons: G and its derivatives with respect to u and v, the same of the cold part, ln(n_pos). */
struct electrons {
    COLUMN g[chunk], g_u[chunk], g_v[chunk], g_uu[chunk], g_uv[chunk], g_vv[chunk];
    COLUMN cold[chunk], cold_u[chunk], cold_uu[chunk], positrons[chunk];
};


/* The cell of a coordinate that counts steps from the first node, as a double, and the part of a step beyond its node. */
INLINE v4 split(v4 steps, int64_t nodes, v4 *part)
{
    v4 cell = nearest(steps - 0.5);
    cell = smaller(larger(cell, splat(0.0)), splat((double)(nodes - 2)));
    *part = smaller(larger(steps - cell, splat(0.0)), splat(1.0));
    return cell;
}

/* Quintic Hermite functions of a cell of length 1 at t: weights of value, first and second derivative at its two ends
   (0, 1, 2 and 3, 4, 5), themselves and (`_1`, `_2`) their derivatives. */
INLINE void quintic(v4 t, v4 *w)
{
    v4 t2 = t * t, t3 = t2 * t, m = 1.0 - t, m2 = m * m, m3 = m2 * m;
    w[3] = t3 * (10.0 + t * (6.0 * t - 15.0));
    w[0] = 1.0 - w[3];
    w[1] = m3 * t * (1.0 + 3.0 * t);
    w[4] = -t3 * m * (1.0 + 3.0 * m);
    w[2] = 0.5 * t2 * m3;
    w[5] = 0.5 * t3 * m2;
}

INLINE void quintic_1(v4 t, v4 *w)
{
    v4 m = 1.0 - t, tm = t * m;
    w[3] = 30.0 * tm * tm;
    w[0] = -w[3];
    w[1] = m * m * (1.0 + t * (2.0 - 15.0 * t));
    w[4] = t * t * (1.0 + m * (2.0 - 15.0 * m));
    w[2] = 0.5 * tm * m * (2.0 - 5.0 * t);
    w[5] = -0.5 * tm * t * (2.0 - 5.0 * m);
}

INLINE void quintic_2(v4 t, v4 *w)
{
    v4 m = 1.0 - t, tm = t * m;
    w[3] = 60.0 * tm * (m - t);
    w[0] = -w[3];
    w[1] = -12.0 * tm * (3.0 - 5.0 * t);
    w[4] = 12.0 * tm * (3.0 - 5.0 * m);
    w[2] = m * (1.0 - t * (8.0 - 10.0 * t));
    w[5] = t * (1.0 - m * (8.0 - 10.0 * m));
}

/* Cubic ones: weights of values and derivatives at the two ends. */
INLINE void cubic(v4 t, v4 *w)
{
    v4 m = 1.0 - t;
    w[2] = t * t * (3.0 - 2.0 * t);
    w[0] = 1.0 - w[2];
    w[1] = t * m * m;
    w[3] = -t * t * m;
}

/* `count` consecutive values for each of four zones, from `from` + `at` + (0 to count - 1), as vectors over the zones. */
INLINE void gather(const double *from, const int64_t *at, int count, v4 *values)
{
    for (int k = 0; k < count; k += 4) {
        /* The last values again if count is not a multiple of 4, so that loads stay within the zone's values. */
        int first = k + 4 > count ? count - 4 : k;
        transpose(load(from + at[0] + first), load(from + at[1] + first), load(from + at[2] + first),
                  load(from + at[3] + first), values + first);
    }
}

/* The sums over density of a column of two nodes adjacent in temperature: for each end of the cell in
   temperature and each derivative with respect to v (0 to 2), weighted with the weights wu of the density. */
INLINE void over_density(const double *thermal, const int64_t *at, int64_t column, const v4 *wu, v4 *sums)
{
    v4 values[2 * node];
    gather(thermal, at, 2 * node, values);
    for (int k = 0; k < 6; k++) sums[k] = wu[0] * values[3 * k] + wu[1] * values[3 * k + 1] + wu[2] * values[3 * k + 2];
    gather(thermal + column, at, 2 * node, values);
    for (int k = 0; k < 6; k++)
        sums[k] += wu[3] * values[3 * k] + wu[4] * values[3 * k + 1] + wu[5] * values[3 * k + 2];
}

INLINE v4 over_six(const v4 *w, const v4 *values)
{
    return (w[0] * values[0] + w[1] * values[1] + w[2] * values[2]) +
           (w[3] * values[3] + w[4] * values[4] + w[5] * values[5]);
}

/* Prefetch the cache lines of a cell. */
INLINE void prefetch(table_t *table, int64_t cell, int few)
{
    const char *first = (const char *)(table->thermal + node * cell);
    for (int column = 0; column < 2; column++) {
        for (int byte = 0; byte < 2 * node * 8; byte += 64) __builtin_prefetch(first + byte);
        __builtin_prefetch(first + 2 * node * 8 - 8);
        first += 8 * node * table->temperatures;
    }
    if (few) return;
    first = (const char *)(table->positrons + node_positrons * cell);
    for (int column = 0; column < 2; column++) {
        __builtin_prefetch(first);
        __builtin_prefetch(first + 2 * node_positrons * 8 - 8);
        first += 8 * node_positrons * table->temperatures;
    }
}

/* The thermal part and the cold part of a chunk's zones; `ahead`: the cells to prefetch, or null. */
NOINLINE void look_up(table_t *table, const struct place *place, const int64_t *ahead, int few, int64_t n_groups,
                      struct electrons *out)
{
    const double per_u = 1.0 / table->step_u, per_v = 1.0 / table->step_v;
    const int64_t column = node * table->temperatures;
    for (int64_t g = 0; g < n_groups; g++) {
        int64_t i = lanes * g;
        int64_t at[lanes], at_cold[lanes];
        for (int l = 0; l < lanes; l++) {
            at[l] = node * place->cell[i + l];
            at_cold[l] = place->cold[i + l];
        }
        if (ahead)
            for (int l = 0; l < lanes; l++) prefetch(table, ahead[i + l], few);
        v4 u = load(place->part_u + i), v = load(place->part_v + i);
        v4 w0[6], w1[6], w2[6], s0[6], s1[6], s2[6], values[2 * node];
        quintic(u, w0);
        quintic_1(u, w1);
        quintic_2(u, w2);
        gather(table->thermal, at, 2 * node, values);
        for (int k = 0; k < 6; k++) {
            const v4 *f = values + 3 * k;
            s0[k] = w0[0] * f[0] + w0[1] * f[1] + w0[2] * f[2];
            s1[k] = w1[0] * f[0] + w1[1] * f[1] + w1[2] * f[2];
            s2[k] = w2[0] * f[0] + w2[1] * f[1] + w2[2] * f[2];
        }
        gather(table->thermal + column, at, 2 * node, values);
        for (int k = 0; k < 6; k++) {
            const v4 *f = values + 3 * k;
            s0[k] += w0[3] * f[0] + w0[4] * f[1] + w0[5] * f[2];
            s1[k] += w1[3] * f[0] + w1[4] * f[1] + w1[5] * f[2];
            s2[k] += w2[3] * f[0] + w2[4] * f[1] + w2[5] * f[2];
        }
        v4 cold[6];
        gather(table->cold, at_cold, 6, cold);
        store(out->cold + i, over_six(w0, cold));
        store(out->cold_u + i, per_u * over_six(w1, cold));
        store(out->cold_uu + i, per_u * per_u * over_six(w2, cold));

        quintic(v, w0);
        quintic_1(v, w1);
        quintic_2(v, w2);
        store(out->g + i, over_six(w0, s0));
        store(out->g_u + i, per_u * over_six(w0, s1));
        store(out->g_uu + i, per_u * per_u * over_six(w0, s2));
        store(out->g_v + i, per_v * over_six(w1, s0));
        store(out->g_uv + i, per_u * per_v * over_six(w1, s1));
        store(out->g_vv + i, per_v * per_v * over_six(w2, s0));
    }
}

/* The logarithm of the positrons' number. */
NOINLINE void look_up_positrons(table_t *table, const struct place *place, int64_t n_groups, struct electrons *out)
{
    const int64_t column = node_positrons * table->temperatures;
    for (int64_t g = 0; g < n_groups; g++) {
        int64_t i = lanes * g;
        int64_t at[lanes];
        for (int l = 0; l < lanes; l++) at[l] = node_positrons * place->cell[i + l];
        v4 wu[4], wv[4], low[8], high[8];
        cubic(load(place->part_u + i), wu);
        cubic(load(place->part_v + i), wv);
        gather(table->positrons, at, 8, low);
        gather(table->positrons + column, at, 8, high);
        v4 sum = splat(0.0);
        for (int t = 0; t < 2; t++) {
            const v4 *f = low + 4 * t, *h = high + 4 * t;
            sum += wv[2 * t] * (wu[0] * f[0] + wu[1] * f[1] + wu[2] * h[0] + wu[3] * h[1]) +
                   wv[2 * t + 1] * (wu[0] * f[2] + wu[1] * f[3] + wu[2] * h[2] + wu[3] * h[3]);
        }
        store(out->positrons + i, sum);
    }
}

#endif
