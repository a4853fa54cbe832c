/* The search of rows.c for the temperature that gives an energy, pressure or entropy. */
#ifndef PW_HELMHOLTZ_ROWS_SEARCH_H
#define PW_HELMHOLTZ_ROWS_SEARCH_H

#include "rows_state.h"

/* Zones whose temperature is searched for, as columns that are compacted so that unfinished ones come first. */
struct search {
    COLUMN target[chunk];                     /* the temperature-dependent part of the given quantity */
    COLUMN allowance[chunk];                  /* its rounding error */
    COLUMN v[chunk], low[chunk], high[chunk]; /* ln(T) and its bracket */
    COLUMN dens[chunk], electrons[chunk];     /* rho; R Ye */
    COLUMN ions[chunk], radiation[chunk];     /* R/A; a/rho */
    COLUMN coupling[chunk], phase[chunk];     /* of Gamma and the Sackur-Tetrode formula, at T = 1 K */
    struct cells cells;                       /* of the layout */
    COLUMN zone[chunk], wrong[chunk];
};

/* Set up the search of a chunk's zones from the given quantity and first guesses in `place`. `ambiguous`: above 0 if cold
   matter with Coulomb corrections would have negative pressure or energy. */
NOINLINE void begin_search(table_t *table, struct place *place, const double *given, int mode, int64_t n_groups,
                           struct search *s, double *ambiguous)
{
    const double per_u = 1.0 / table->step_u, gas = table->gas_constant;
    const double epsilon = 2.220446049250313e-16;
    for (int64_t g = 0; g < n_groups; g++) {
        int64_t i = lanes * g;
        v4 dens = load(place->dens + i), per_abar = 1.0 / load(place->abar + i), v = load(place->ln_temp + i);
        v4 ye = load(place->zbar + i) * per_abar, goal = load(given + i);
        v4 w0[6], w1[6], cold[6];
        quintic(load(place->part_u + i), w0);
        quintic_1(load(place->part_u + i), w1);
        keep_weights(&s->cells, i, w0, w1);
        gather(table->cold, place->cold + i, 6, cold);
        v4 coupling_1 = load(place->ln_coupling + i) + v;
        v4 fixed = ye * over_six(w0, cold), pressure = dens * ye * (per_u * over_six(w1, cold)), bound = splat(0.0);
        if (table->coulomb) bound = (a1 * gas) * per_abar * exponential(coupling_1);
        store(ambiguous + i, choose((fixed + bound > 0.0) & (pressure + (1.0 / 3.0) * bound * dens > 0.0), splat(0.0), splat(1.0)));
        if (mode == PW_HELMHOLTZ_PRESSURE) {
            fixed = pressure;
            bound *= (1.0 / 3.0) * dens;
        } else if (mode == PW_HELMHOLTZ_ENTROPY) {
            fixed = splat(0.0);
            bound = fixed;
        }
        store(s->target + i, goal - fixed - bound);
        store(s->allowance + i, (32.0 * epsilon) * (larger(goal, -goal) + fixed - bound));
        store(s->v + i, v);
        store(s->low + i, splat(table->first_v - 1.0));
        store(s->high + i, splat(table->last_v + 1.0));
        store(s->dens + i, dens);
        store(s->electrons + i, gas * ye);
        store(s->ions + i, gas * per_abar);
        store(s->radiation + i, table->radiation / dens);
        store(s->coupling + i, coupling_1);
        store(s->phase + i, load(place->ln_phase + i) - 1.5 * v);
        keep_cell(table, place, i, &s->cells);
        v4 zone;
        for (int l = 0; l < lanes; l++) zone[l] = (double)(i + l);
        store(s->zone + i, zone);
        store(s->wrong + i, splat(0.0));
    }
}

/* The layout's sums over the density of the thermal part of a group of zones, in `cell` of temperature and `part` of it: 6 of the
   values and, for the pressure, 6 of the derivatives with respect to u. */
INLINE void density_sums(table_t *table, struct search *s, int64_t i, int mode, v4 cell, v4 part, v4 *sums);

/* A step of the search for a group of zones. Newton's method for the logarithm of energy or pressure as a function of that
   of the temperature, which is nearly a straight line, and for the entropy itself. A step outside of the bracket, which
   each value narrows, becomes a bisection. Returns the finished zones; `wrong` marks those without a solution. */
/* NOLINTNEXTLINE(readability-function-size): one step, whose sums stay in registers. */
INLINE m4 search_step(table_t *table, struct search *s, int64_t i, int mode, int halve)
{
    const double per_u = 1.0 / table->step_u, per_v = 1.0 / table->step_v;
    v4 v = load(s->v + i), part, w[6], sums[12];
    v4 cell = split((v - table->first_v) * per_v, table->temperatures, &part);
    density_sums(table, s, i, mode, cell, part, sums);

    v4 temp = exponential(v), dens = load(s->dens + i);
    v4 ions = load(s->ions + i), rt = ions * temp;
    quintic(part, w);
    v4 a = load(s->electrons + i) * temp * exponential(over_six(w, sums));
    v4 g_u = splat(0.0), g_uv = g_u;
    if (mode == PW_HELMHOLTZ_PRESSURE) g_u = per_u * over_six(w, sums + 6);
    quintic_1(part, w);
    v4 g_v = per_v * over_six(w, sums);
    if (mode == PW_HELMHOLTZ_PRESSURE) g_uv = per_u * per_v * over_six(w, sums + 6);
    v4 one = 1.0 + g_v;
    v4 gamma, phi = splat(0.0), u = phi, slope = phi;
    if (table->coulomb) coupling(load(s->coupling + i) - v, &gamma, &phi, &u, &slope);

    v4 value, change, target = load(s->target + i), step;
    if (mode == PW_HELMHOLTZ_PRESSURE) {
        v4 pressure = (1.0 / 3.0) * load(s->radiation + i) * temp * temp * temp * temp;
        value = dens * (pressure + rt * (1.0 + (1.0 / 3.0) * u) - a * g_u);
        change = dens * (4.0 * pressure + rt * (1.0 + (1.0 / 3.0) * (u - slope)) - a * (one * g_u + g_uv));
    } else {
        v4 energy = load(s->radiation + i) * temp * temp * temp * temp;
        quintic_2(part, w);
        v4 g_vv = per_v * per_v * over_six(w, sums);
        value = energy + rt * (1.5 + u) + a * g_v;
        change = 4.0 * energy + rt * (1.5 + (u - slope)) + a * (g_v * one + g_vv);
        if (mode == PW_HELMHOLTZ_ENTROPY) {
            value = (a * one + (4.0 / 3.0) * energy) / temp +
                    ions * (2.5 + load(s->phase + i) + 1.5 * v + (u - phi));
            change = change / temp;
        }
    }
    if (mode == PW_HELMHOLTZ_ENTROPY)
        step = (target - value) / change;
    else
        step = logarithm(larger(target, splat(1.0e-300)) / value) * (value / change);

    m4 below = value < target, above = value > target;
    v4 low = choose(below, v, load(s->low + i)), high = choose(above, v, load(s->high + i));
    /* Nothing is beyond the table's ends, except by rounding. */
    v4 allowance = load(s->allowance + i);
    m4 coldest = v <= table->first_v, hottest = v >= table->last_v;
    m4 at_end = (coldest & above) | (hottest & below);
    m4 beyond = (coldest & (value - target > allowance)) | (hottest & (target - value > allowance));
    v4 next = smaller(larger(v + step, splat(table->first_v)), splat(table->last_v));
    m4 newton = (next >= low) & (next <= high);
    if (halve) newton = newton & (distance(next, v) < 0.5 * (high - low));
    next = choose(newton, next, smaller(larger(0.5 * (low + high), splat(table->first_v)), splat(table->last_v)));
    m4 same = ~(below | above);
    m4 done = same | at_end | (newton & (distance(next, v) < 3.0e-8)) | (high - low < 1.0e-14);
    store(s->v + i, choose(at_end | same, v, next));
    store(s->low + i, low);
    store(s->high + i, high);
    store(s->wrong + i, choose(beyond, choose(coldest, splat(PW_HELMHOLTZ_TOO_LOW), splat(PW_HELMHOLTZ_TOO_HIGH)), splat(0.0)));
    return done;
}

#if defined(PW_TABLE_ARRAYS)
#include "rows_arrays_search.h"
#else
#include "rows_nodes_search.h"
#endif

NOINLINE void search_energy(table_t *table, struct search *s, int64_t n, const int64_t *next_cells, int few, double *temp,
                            double *wrong)
{
    search(table, s, n, PW_HELMHOLTZ_ENERGY, next_cells, few, temp, wrong);
}

NOINLINE void search_pressure(table_t *table, struct search *s, int64_t n, const int64_t *next_cells, int few, double *temp,
                              double *wrong)
{
    search(table, s, n, PW_HELMHOLTZ_PRESSURE, next_cells, few, temp, wrong);
}

NOINLINE void search_entropy(table_t *table, struct search *s, int64_t n, const int64_t *next_cells, int few, double *temp,
                             double *wrong)
{
    search(table, s, n, PW_HELMHOLTZ_ENTROPY, next_cells, few, temp, wrong);
}

#endif
