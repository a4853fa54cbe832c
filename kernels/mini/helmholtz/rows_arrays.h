/* The table as separate arrays (--table arrays), accessed as the public routine of Timmes and Swesty (ApJS 126, 501, 2000) does: a
   zone's evaluation reads the four corners of its cell in each array, which are on as many pages as there are arrays. */
#ifndef PW_HELMHOLTZ_ROWS_ARRAYS_H
#define PW_HELMHOLTZ_ROWS_ARRAYS_H

#include "rows_table.h"

/* The arrays: 9 of the free energy as in a node, then 4 each of ln(dp/dx), eta and ln(n_pos): values and their derivatives with
   respect to u, v, uv. Those that `few` does not need follow the others. */
enum { array_slope = node, array_eta = array_slope + 4, array_positrons = array_eta + 4, all_arrays = array_positrons + 4 };
enum { few_arrays = array_eta };

/* The number of a cell's first node, as a double: as in the public routine, neighbours in density are side by side. */
INLINE v4 first_node(table_t *table, v4 cell_u, v4 cell_v)
{
    return cell_v * (double)table->densities + cell_u;
}

INLINE v4 slope_of_pressure(const struct electrons *electrons, int64_t i, v4 second)
{
    (void)second;
    return exponential(load(electrons->ln_dpdx + i));
}

/* eta has its own arrays. */
INLINE v4 degeneracy(table_t *table, const struct electrons *electrons, int64_t i, v4 eta, v4 per_temp, v4 n_net, v4 n_pos)
{
    (void)table, (void)eta, (void)per_temp, (void)n_net, (void)n_pos;
    return load(electrons->eta + i);
}

/* The number `at` of each zone of a group, as a vector over the zones. */
INLINE v4 pick(const double *from, const int64_t *at)
{
    return (v4){from[at[0]], from[at[1]], from[at[2]], from[at[3]]};
}

/* Prefetch the cells of the arrays. The pair of neighbours in density is in one cache line, or in adjacent ones. */
INLINE void prefetch(table_t *table, int64_t cell, int few)
{
    const int64_t points = table->densities * table->temperatures;
    const double *first = table->arrays + cell;
    for (int k = 0; k < (few ? few_arrays : all_arrays); k++, first += points) {
        __builtin_prefetch(first);
        __builtin_prefetch(first + table->densities);
    }
}

/* A function with four arrays, the first of which is `from`, by cubic Hermite functions of density (wu) and temperature (wv). */
INLINE v4 over_corners(table_t *table, const double *from, const int64_t *at, const v4 *wu, const v4 *wv)
{
    const int64_t points = table->densities * table->temperatures;
    v4 sum = splat(0.0);
    for (int k = 0; k < 4; k++, from += points) {
        /* Value, d/du, d/dv, d2/dudv. */
        const int u = k % 2, v = k / 2;
        const double *hot = from + table->densities;
        sum += wv[v] * (wu[u] * pick(from, at) + wu[u + 2] * pick(from + 1, at)) +
               wv[v + 2] * (wu[u] * pick(hot, at) + wu[u + 2] * pick(hot + 1, at));
    }
    return sum;
}

/* Evaluate the electrons' functions of temperature for a group of zones that begins at i: array by array, all that the state
   needs. The search does this in every step, too, as callers of the public routine do. `sums`: the thermal part's over the
   density. */
NOINLINE void interpolate(table_t *table, const struct place *place, int few, int64_t i, struct electrons *out,
                          struct orders *sums)
{
    const double per_u = 1.0 / table->step_u, per_v = 1.0 / table->step_v;
    const int64_t points = table->densities * table->temperatures, *at = place->cell + i;
    const double *from = table->arrays;
    v4 u = load(place->part_u + i), v = load(place->part_v + i), low[2 * node], high[2 * node];
    for (int k = 0; k < node; k++, from += points) {
        const double *hot = from + table->densities;
        low[k] = pick(from, at);
        high[k] = pick(from + 1, at);
        low[node + k] = pick(hot, at);
        high[node + k] = pick(hot + 1, at);
    }
    struct orders w;
    quintic(u, w.value);
    quintic_1(u, w.first);
    quintic_2(u, w.second);
    begin_sums(low, &w, sums);
    end_sums(high, &w, sums);
    quintic(v, w.value);
    quintic_1(v, w.first);
    quintic_2(v, w.second);
    sum_thermal(sums, per_u, per_v, &w, i, out);

    v4 wu[4], wv[4];
    cubic(u, wu);
    cubic(v, wv);
    store(out->ln_dpdx + i, over_corners(table, table->arrays + array_slope * points, at, wu, wv));
    if (few) return;
    store(out->eta + i, over_corners(table, table->arrays + array_eta * points, at, wu, wv));
    store(out->positrons + i, over_corners(table, table->arrays + array_positrons * points, at, wu, wv));
}

/* All functions of a chunk's zones; `ahead`: the cells to prefetch, or null. */
NOINLINE void look_up(table_t *table, const struct place *place, const int64_t *next_cells, int few, int64_t n_groups,
                      struct electrons *out)
{
    const double per_u = 1.0 / table->step_u;
    for (int64_t g = 0; g < n_groups; g++) {
        int64_t i = lanes * g;
        struct orders w;
        if (next_cells)
            for (int l = 0; l < lanes; l++) prefetch(table, next_cells[i + l], few);
        interpolate(table, place, few, i, out, &w);
        v4 u = load(place->part_u + i);
        quintic(u, w.value);
        quintic_1(u, w.first);
        quintic_2(u, w.second);
        sum_cold(table->cold, place->cold + i, per_u, &w, i, out);
    }
}

/* The positrons are among the functions of look_up. */
INLINE void look_up_positrons(table_t *table, const struct place *place, int64_t n_groups, struct electrons *out)
{
    (void)table, (void)place, (void)n_groups, (void)out;
}

/* What the search keeps of its zones: where they are, and their functions at the last temperature. */
struct cells {
    struct electrons electrons;
    struct place *place;
    int few;
};

INLINE void keep_weights(struct cells *cells, int64_t i, const v4 *w0, const v4 *w1)
{
    (void)cells, (void)i, (void)w0, (void)w1;
}

INLINE void keep_cell(table_t *table, struct place *place, int64_t i, struct cells *cells)
{
    (void)table, (void)i;
    cells->place = place;
}

#endif
