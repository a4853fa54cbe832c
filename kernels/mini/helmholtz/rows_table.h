/* The table of rows.c: the cells of zones, and the interpolation in them, for both layouts of the table. Part of one translation
   unit, so that all is inlined. */
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
    node = 9,
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

/* The table's values of the electrons: G and its derivatives with respect to u and v, the same of the cold part, ln(n_pos); and
   those that only the layout `arrays` has: ln(dp/dx) and eta. */
struct electrons {
    COLUMN g[chunk], g_u[chunk], g_v[chunk], g_uu[chunk], g_uv[chunk], g_vv[chunk];
    COLUMN cold[chunk], cold_u[chunk], cold_uu[chunk], positrons[chunk];
#if defined(PW_TABLE_ARRAYS)
    COLUMN ln_dpdx[chunk], eta[chunk];
#endif
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

INLINE v4 over_six(const v4 *w, const v4 *values)
{
    return (w[0] * values[0] + w[1] * values[1] + w[2] * values[2]) +
           (w[3] * values[3] + w[4] * values[4] + w[5] * values[5]);
}

/* Six numbers each of the value and of its first and second derivative: the weights of a coordinate, or sums with them. */
struct orders {
    v4 value[6], first[6], second[6];
};

/* Begin the sums over the density from the values of the cell's two nodes at its lower density, 9 each; w: the density's. */
INLINE void begin_sums(const v4 *values, const struct orders *w, struct orders *sums)
{
    for (int k = 0; k < 6; k++) {
        const v4 *f = values + 3 * k;
        sums->value[k] = w->value[0] * f[0] + w->value[1] * f[1] + w->value[2] * f[2];
        sums->first[k] = w->first[0] * f[0] + w->first[1] * f[1] + w->first[2] * f[2];
        sums->second[k] = w->second[0] * f[0] + w->second[1] * f[1] + w->second[2] * f[2];
    }
}

/* Add those at its upper density. */
INLINE void end_sums(const v4 *values, const struct orders *w, struct orders *sums)
{
    for (int k = 0; k < 6; k++) {
        const v4 *f = values + 3 * k;
        sums->value[k] += w->value[3] * f[0] + w->value[4] * f[1] + w->value[5] * f[2];
        sums->first[k] += w->first[3] * f[0] + w->first[4] * f[1] + w->first[5] * f[2];
        sums->second[k] += w->second[3] * f[0] + w->second[4] * f[1] + w->second[5] * f[2];
    }
}

/* The cold part of a group of zones that begins at i; w: the density's weights, per_u: 1/step_u. */
INLINE void sum_cold(const double *from, const int64_t *at, double per_u, const struct orders *w, int64_t i,
                     struct electrons *out)
{
    v4 cold[6];
    gather(from, at, 6, cold);
    store(out->cold + i, over_six(w->value, cold));
    store(out->cold_u + i, per_u * over_six(w->first, cold));
    store(out->cold_uu + i, per_u * per_u * over_six(w->second, cold));
}

/* The thermal part from its sums over the density; w: the temperature's weights. */
INLINE void sum_thermal(const struct orders *sums, double per_u, double per_v, const struct orders *w, int64_t i,
                        struct electrons *out)
{
    store(out->g + i, over_six(w->value, sums->value));
    store(out->g_u + i, per_u * over_six(w->value, sums->first));
    store(out->g_uu + i, per_u * per_u * over_six(w->value, sums->second));
    store(out->g_v + i, per_v * over_six(w->first, sums->value));
    store(out->g_uv + i, per_u * per_v * over_six(w->first, sums->first));
    store(out->g_vv + i, per_v * per_v * over_six(w->second, sums->value));
}

#endif
