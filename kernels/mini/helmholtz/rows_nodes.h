/* The table as packed nodes (--table nodes): all numbers of a node side by side, so that a cell is two runs of 144 bytes. */
#ifndef PW_HELMHOLTZ_ROWS_NODES_H
#define PW_HELMHOLTZ_ROWS_NODES_H

#include "rows_table.h"

enum { node_positrons = 4 };

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

/* The number of a cell's first node, as a double: nodes that are neighbours in temperature are side by side. */
INLINE v4 first_node(table_t *table, v4 cell_u, v4 cell_v)
{
    return cell_u * (double)table->temperatures + cell_v;
}

/* dp/dx of electrons and positrons from `second`, f_u + f_uu of the free energy; below zero only by rounding. */
INLINE v4 slope_of_pressure(const struct electrons *electrons, int64_t i, v4 second)
{
    (void)electrons, (void)i;
    return larger(second, splat(0.0));
}

/* eta from `eta`, that of the free energy. In a plasma of pairs mu + m c^2 is nearly zero, the difference of far larger numbers;
   there it follows from the numbers of both kinds, n_ele - n_pos = n, whose ratio is exp(2 (mu + m c^2)/kT) to first order. */
INLINE v4 degeneracy(table_t *table, const struct electrons *electrons, int64_t i, v4 eta, v4 per_temp, v4 n_net, v4 n_pos)
{
    (void)electrons, (void)i;
    v4 pairs = 0.5 * n_net / n_pos - table->rest_temperature * per_temp;
    return choose(n_pos > 1.0e6 * n_net, pairs, eta);
}

/* What the search keeps of its zones' cells, as columns. */
struct cells {
    COLUMN cell_v[chunk];      /* the cell of the sums */
    COLUMN column[chunk];      /* the density's first node */
    COLUMN weights[12][chunk]; /* quintic Hermite functions of the density, and their derivatives */
    COLUMN sums[12][chunk];    /* of the table over density: see over_density */
};

INLINE void keep_weights(struct cells *cells, int64_t i, const v4 *w0, const v4 *w1)
{
    for (int k = 0; k < 6; k++) {
        store(cells->weights[k] + i, w0[k]);
        store(cells->weights[k + 6] + i, w1[k]);
    }
}

INLINE void keep_cell(table_t *table, struct place *place, int64_t i, struct cells *cells)
{
    v4 column;
    for (int l = 0; l < lanes; l++) {
        const int64_t row = place->cold[i + l] / 3;
        column[l] = (double)(row * table->temperatures);
    }
    store(cells->cell_v + i, splat(-1.0));
    store(cells->column + i, column);
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
NOINLINE void look_up(table_t *table, const struct place *place, const int64_t *next_cells, int few, int64_t n_groups,
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
        if (next_cells)
            for (int l = 0; l < lanes; l++) prefetch(table, next_cells[i + l], few);
        v4 u = load(place->part_u + i), v = load(place->part_v + i), values[2 * node];
        struct orders w, sums;
        quintic(u, w.value);
        quintic_1(u, w.first);
        quintic_2(u, w.second);
        gather(table->thermal, at, 2 * node, values);
        begin_sums(values, &w, &sums);
        gather(table->thermal + column, at, 2 * node, values);
        end_sums(values, &w, &sums);
        sum_cold(table->cold, at_cold, per_u, &w, i, out);
        quintic(v, w.value);
        quintic_1(v, w.first);
        quintic_2(v, w.second);
        sum_thermal(&sums, per_u, per_v, &w, i, out);
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
