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

/* ------------------------------------------------------------------------------------------------ the table ---- */

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

/* ------------------------------------------------------------------------------------------------- Coulomb ---- */

/* Fits to the one-component plasma: Yakovlev and Shalybkov 1989 with the coefficients that Timmes and Swesty 2000 use.
   F/(N k T) = phi, U/(N k T) = u = Gamma dphi/dGamma; for Gamma >= 1
       u = a1 Gamma + b1 Gamma^(1/4) + c1 Gamma^(-1/4) + d1,    below    u = -3 c2 Gamma^(3/2) + a2 Gamma^b2.
   d1 (published: -0.86097) and the constant of phi (published: -2.5269) are chosen so that u and phi are continuous at 1. */
static const double a1 = -0.898004, b1 = 0.96786, c1 = 0.220703, a2 = 0.29561, b2 = 1.9885, c2 = 0.288675;
static const double d1 = -3 * 0.288675 + 0.29561 + 0.898004 - 0.96786 - 0.220703;
static const double e1 = -2 * 0.288675 + 0.29561 / 1.9885 + 0.898004 - 4 * 0.96786 + 4 * 0.220703;

/* Gamma, and phi, u and du/dlnGamma minus a1*Gamma, of zones with the given ln(Gamma). That term is the same in all three,
   and may be far larger than their differences; it is the temperature-independent part of the energy. */
INLINE void coupling(v4 ln_gamma, v4 *gamma, v4 *phi, v4 *u, v4 *slope)
{
    v4 quarter = exponential(0.25 * ln_gamma);
    v4 half = quarter * quarter, whole = half * half;
    m4 strong = ln_gamma >= 0.0;
    v4 p = splat(0.0), q = p, d = p;
    if (any(strong)) {
        v4 b = b1 * quarter, c = c1 / quarter;
        p = 4.0 * (b - c) + (d1 * ln_gamma + e1);
        q = b + c + d1;
        d = 0.25 * (b - c);
    }
    if (any(~strong)) {
        v4 root = c2 * (whole * half), power = a2 * exponential(b2 * ln_gamma), first = a1 * whole;
        p = choose(strong, p, power * (1.0 / b2) - 2.0 * root - first);
        q = choose(strong, q, power - 3.0 * root - first);
        d = choose(strong, d, b2 * power - 4.5 * root - first);
    }
    *gamma = whole;
    *phi = p;
    *u = q;
    *slope = d;
}

/* ------------------------------------------------------------------------------------ density and temperature ---- */

/* The positions of the zones in the table, which require finite values. */
NOINLINE void find(table_t *table, struct place *place, int64_t n_groups)
{
    const double per_u = 1.0 / table->step_u, per_v = 1.0 / table->step_v;
    for (int64_t g = 0; g < n_groups; g++) {
        int64_t i = lanes * g;
        v4 ln_dens = logarithm(load(place->dens + i)), ln_abar = logarithm(load(place->abar + i));
        v4 ln_zbar = logarithm(load(place->zbar + i)), v = logarithm(load(place->temp + i));
        v4 part_u, part_v;
        v4 cell_u = split((ln_dens - ln_abar + ln_zbar - table->first_u) * per_u, table->densities, &part_u);
        v4 cell_v = split((v - table->first_v) * per_v, table->temperatures, &part_v);
        store(place->part_u + i, part_u);
        store(place->part_v + i, part_v);
        store(place->ln_coupling + i,
              (table->ln_coupling - v) + 2.0 * ln_zbar + (1.0 / 3.0) * (ln_dens - ln_abar));
        store(place->ln_phase + i, (table->ln_sackur_tetrode + 1.5 * v) + 2.5 * ln_abar - ln_dens);
        store(place->ln_temp + i, v);
        store_integers(place->cold + i, 3.0 * cell_u);
        store_integers(place->cell + i, cell_u * (double)table->temperatures + cell_v);
    }
}

/* All quantities of a chunk's zones, whose rows begin at `state`; `coulomb`: 1, or 0 for the zones without corrections. On
   return it is also 0 for those in which they would make pressure or energy negative. */
INLINE void assemble(table_t *table, const struct place *place, const struct electrons *electrons, int64_t n_groups,
                     int few, double *coulomb, double *const *columns)
{
    const double gas = table->gas_constant, light2 = table->speed_of_light * table->speed_of_light;
    for (int64_t g = 0; g < n_groups; g++) {
        int64_t i = lanes * g;
        v4 dens = load(place->dens + i), temp = load(place->temp + i), abar = load(place->abar + i);
        v4 zbar = load(place->zbar + i);
        v4 per_temp = 1.0 / temp, per_dens = 1.0 / dens, per_abar = 1.0 / abar;
        v4 ye = zbar * per_abar;

        /* Electrons and positrons: f = cold - a; derivatives with respect to u and v as in docs/helmholtz.md. */
        v4 g_u = load(electrons->g_u + i), g_v = load(electrons->g_v + i);
        v4 one = 1.0 + g_v;
        v4 cold = load(electrons->cold + i), cold_u = load(electrons->cold_u + i);
        v4 a = (gas * temp) * exponential(load(electrons->g + i));
        v4 f_u = cold_u - a * g_u;
        v4 f_uu = load(electrons->cold_uu + i) - a * (g_u * g_u + load(electrons->g_uu + i));
        v4 f_uv = -a * (one * g_u + load(electrons->g_uv + i));
        v4 x = dens * ye;
        v4 pres = x * f_u;                               /* p */
        v4 pres_v = x * f_uv;                            /* T dp/dT */
        v4 pres_u = x * larger(f_u + f_uu, splat(0.0));  /* rho dp/drho; below zero only by rounding */
        v4 eint = ye * (cold + a * g_v);
        v4 eint_v = (ye * a) * (g_v * one + load(electrons->g_vv + i));
        v4 eint_u = ye * (f_u - f_uv);
        v4 entr = (ye * a) * one * per_temp;
        v4 entr_u = -ye * f_uv * per_temp;
        v4 n_a, n_z, eint_a, eint_z, entr_a, entr_z;     /* with respect to ln(abar), ln(zbar) */
        n_z = pres_u;
        n_a = -pres_u;
        eint_z = eint + eint_u;
        eint_a = -eint_z;
        entr_z = entr + entr_u;
        entr_a = -entr_z;

        /* Radiation. */
        v4 cube = table->radiation * temp * temp * temp;
        v4 pres_r = (1.0 / 3.0) * cube * temp, eint_r = cube * temp * per_dens, entr_r = (4.0 / 3.0) * cube * per_dens;

        /* Ions. */
        v4 r = gas * per_abar, rt = r * temp, p1 = dens * rt;
        v4 phase = load(place->ln_phase + i);

        pres += pres_r + p1;
        pres_v += 4.0 * pres_r + p1;
        pres_u += p1;
        n_a -= p1;
        eint += eint_r + 1.5 * rt;
        eint_v += 4.0 * eint_r + 1.5 * rt;
        eint_u -= eint_r;
        eint_a -= 1.5 * rt;
        entr += entr_r + r * (2.5 + phase);
        entr_u -= entr_r + r;
        entr_a -= r * phase;

        /* Coulomb corrections. */
        v4 on = load(coulomb + i), gamma, phi, u, slope;
        if (table->coulomb) {
            coupling(load(place->ln_coupling + i), &gamma, &phi, &u, &slope);
            v4 bound = u - phi, heat = u - slope;
            u += a1 * gamma;
            slope += a1 * gamma;
            on = choose((pres + (1.0 / 3.0) * p1 * u > 0.0) & (eint + rt * u > 0.0), on, splat(0.0));
            store(coulomb + i, on);
            r *= on;
            rt *= on;
            p1 *= on * (1.0 / 3.0);
            pres += p1 * u;
            pres_v += p1 * heat;
            pres_u += p1 * (u + (1.0 / 3.0) * slope);
            eint += rt * u;
            eint_v += rt * heat;
            eint_u += (1.0 / 3.0) * rt * slope;
            entr += r * bound;
            entr_u -= (1.0 / 3.0) * r * heat;
            if (!few) {
                n_a -= p1 * (u + (1.0 / 3.0) * slope);
                n_z += 2.0 * p1 * slope;
                eint_a -= rt * (u + (1.0 / 3.0) * slope);
                eint_z += 2.0 * rt * slope;
                entr_a -= r * (bound - (1.0 / 3.0) * heat);
                entr_z -= 2.0 * r * heat;
            }
        }

        /* Cox and Giuli, Principles of Stellar Structure, chapter 9; the sound speed of a relativistic fluid: chapter 14. */
        v4 per_pres = 1.0 / pres;
        v4 chi_t = pres_v * per_pres, chi_rho = pres_u * per_pres;
        v4 gam3_1 = pres_v * per_dens / eint_v;
        v4 gam1 = chi_t * gam3_1 + chi_rho;
        store(columns[c_eint] + i, eint);
        store(columns[c_pres] + i, pres);
        store(columns[c_entr] + i, entr);
        store(columns[c_gam1] + i, gam1);
        store(columns[c_cs] + i, square_root(light2 * gam1 / (1.0 + (eint + light2) * dens * per_pres)));
        if (few) continue;

        v4 per_zbar = 1.0 / zbar;
        v4 cv = eint_v * per_temp;
        store(columns[c_dedt] + i, cv);
        store(columns[c_dedd] + i, eint_u * per_dens);
        store(columns[c_dpdt] + i, pres_v * per_temp);
        store(columns[c_dpdd] + i, pres_u * per_dens);
        store(columns[c_dsdt] + i, cv * per_temp);
        store(columns[c_dsdd] + i, entr_u * per_dens);
        store(columns[c_deda] + i, eint_a * per_abar);
        store(columns[c_dedz] + i, eint_z * per_zbar);
        store(columns[c_dpda] + i, n_a * per_abar);
        store(columns[c_dpdz] + i, n_z * per_zbar);
        store(columns[c_dsda] + i, entr_a * per_abar);
        store(columns[c_dsdz] + i, entr_z * per_zbar);
        v4 nabla = gam3_1 / gam1;
        store(columns[c_cp] + i, cv * gam1 / chi_rho);
        store(columns[c_gam2] + i, 1.0 / (1.0 - nabla));
        store(columns[c_gam3] + i, 1.0 + gam3_1);
        store(columns[c_nabla] + i, nabla);
        /* In a plasma of pairs mu + m c^2 is nearly zero, the difference of far larger numbers; there it follows from the
           numbers of both kinds, n_ele - n_pos = n, whose ratio is exp(2 (mu + m c^2)/kT) to first order. */
        v4 n_net = table->avogadro * x, n_pos = exponential(load(electrons->positrons + i));
        v4 eta = (cold + cold_u - a * (1.0 + g_u)) * (1.0 / gas) * per_temp;
        v4 pairs = 0.5 * n_net / n_pos - table->rest_temperature * per_temp;
        store(columns[c_eta] + i, choose(n_pos > 1.0e6 * n_net, pairs, eta));
        store(columns[c_npos] + i, n_pos);
        store(columns[c_nele] + i, n_net + n_pos);
    }
}

NOINLINE void assemble_few(table_t *table, const struct place *place, const struct electrons *electrons, int64_t n_groups,
                           double *coulomb, double *const *columns)
{
    assemble(table, place, electrons, n_groups, 1, coulomb, columns);
}

NOINLINE void assemble_all(table_t *table, const struct place *place, const struct electrons *electrons, int64_t n_groups,
                           double *coulomb, double *const *columns)
{
    assemble(table, place, electrons, n_groups, 0, coulomb, columns);
}

/* ------------------------------------------------------------------------------------------- the temperature ---- */

/* Zones whose temperature is searched for, as columns that are compacted so that unfinished ones come first. */
struct search {
    COLUMN target[chunk];                     /* the temperature-dependent part of the given quantity */
    COLUMN allowance[chunk];                  /* its rounding error */
    COLUMN v[chunk], low[chunk], high[chunk]; /* ln(T) and its bracket */
    COLUMN dens[chunk], electrons[chunk];     /* rho; R Ye */
    COLUMN ions[chunk], radiation[chunk];     /* R/A; a/rho */
    COLUMN coupling[chunk], phase[chunk];     /* of Gamma and the Sackur-Tetrode formula, at T = 1 K */
    COLUMN cell_v[chunk];                     /* the cell of the sums */
    COLUMN column[chunk];                     /* the density's first node */
    COLUMN weights[12][chunk];                /* quintic Hermite functions of the density, and their derivatives */
    COLUMN sums[12][chunk];                   /* of the table over density: see over_density */
    COLUMN zone[chunk], wrong[chunk];
};
enum { search_columns = sizeof(struct search) / (chunk * sizeof(double)) };

/* Set up the search of a chunk's zones from the given quantity and first guesses in `place`. `ambiguous`: above 0 if cold
   matter with Coulomb corrections would have negative pressure or energy. */
NOINLINE void begin_search(table_t *table, const struct place *place, const double *given, int mode, int64_t n_groups,
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
        for (int k = 0; k < 6; k++) {
            store(s->weights[k] + i, w0[k]);
            store(s->weights[k + 6] + i, w1[k]);
        }
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
        store(s->cell_v + i, splat(-1.0));
        v4 zone, column;
        for (int l = 0; l < lanes; l++) {
            zone[l] = (double)(i + l);
            column[l] = (double)(place->cold[i + l] / 3 * table->temperatures);
        }
        store(s->zone + i, zone);
        store(s->column + i, column);
        store(s->wrong + i, splat(0.0));
    }
}

/* A step of the search for a group of zones. Newton's method for the logarithm of energy or pressure as a function of that
   of the temperature, which is nearly a straight line, and for the entropy itself. A step outside of the bracket, which
   each value narrows, becomes a bisection. Returns the finished zones; `wrong` marks those without a solution. */
INLINE m4 search_step(table_t *table, struct search *s, int64_t i, int mode, int halve)
{
    const double per_u = 1.0 / table->step_u, per_v = 1.0 / table->step_v;
    v4 v = load(s->v + i), part, w[6], sums[12];
    v4 cell = split((v - table->first_v) * per_v, table->temperatures, &part);
    if (any(cell != load(s->cell_v + i))) {
        int64_t at[lanes];
        v4 weights[6];
        store_integers(at, (load(s->column + i) + cell) * (double)node);
        for (int half = 0; half < (mode == PW_HELMHOLTZ_PRESSURE ? 2 : 1); half++) {
            for (int k = 0; k < 6; k++) weights[k] = load(s->weights[6 * half + k] + i);
            over_density(table->thermal, at, node * table->temperatures, weights, sums + 6 * half);
            for (int k = 0; k < 6; k++) store(s->sums[6 * half + k] + i, sums[6 * half + k]);
        }
        store(s->cell_v + i, cell);
    }
    for (int k = 0; k < (mode == PW_HELMHOLTZ_PRESSURE ? 12 : 6); k++) sums[k] = load(s->sums[k] + i);

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

/* Find the temperatures of the chunk's zones; `wrong`: (chunk) the faults of the zones. */
INLINE void search(table_t *table, struct search *s, int64_t n, int mode, const int64_t *ahead, int few, double *temp,
                   double *wrong)
{
    int64_t left = n;
    for (int iteration = 0; left > 0; iteration++) {
        alignas(64) int64_t done[chunk];
        int64_t n_groups = (left + lanes - 1) / lanes;
        for (int64_t g = 0; g < n_groups; g++) {
            if (ahead && iteration == 0)
                for (int l = 0; l < lanes; l++) prefetch(table, ahead[lanes * g + l], few);
            *(m4 *)(done + lanes * g) = search_step(table, s, lanes * g, mode, iteration > 25);
        }
        /* Return the finished zones; the last unfinished ones replace them. */
        for (int64_t i = 0; i < left; i++) {
            if (!done[i] && iteration < most_iterations) continue;
            int64_t zone = (int64_t)s->zone[i];
            temp[zone] = s->v[i];
            wrong[zone] = done[i] ? s->wrong[i] : (double)PW_HELMHOLTZ_NOT_FOUND;
            done[i] = -1;
        }
        for (int64_t i = 0; i < left; i++) {
            while (left > i && done[left - 1]) left--;
            if (left <= i || !done[i]) continue;
            left--;
            double *column = (double *)s;
            for (int k = 0; k < search_columns; k++, column += chunk) column[i] = column[left];
            done[i] = 0;
        }
    }
    for (int64_t i = 0; i < n; i += lanes) store(temp + i, exponential(load(temp + i)));
}

NOINLINE void search_energy(table_t *table, struct search *s, int64_t n, const int64_t *ahead, int few, double *temp,
                            double *wrong)
{
    search(table, s, n, PW_HELMHOLTZ_ENERGY, ahead, few, temp, wrong);
}

NOINLINE void search_pressure(table_t *table, struct search *s, int64_t n, const int64_t *ahead, int few, double *temp,
                              double *wrong)
{
    search(table, s, n, PW_HELMHOLTZ_PRESSURE, ahead, few, temp, wrong);
}

NOINLINE void search_entropy(table_t *table, struct search *s, int64_t n, const int64_t *ahead, int few, double *temp,
                             double *wrong)
{
    search(table, s, n, PW_HELMHOLTZ_ENTROPY, ahead, few, temp, wrong);
}

/* ------------------------------------------------------------------------------------------------------ rows ---- */

/* ln(Gamma) below which corrections are too small to make a quantity negative. */
static const double ln_least_coupling = -1.2;

/* The default first guess: the temperature at which an ideal gas, or radiation, alone would have the given quantity. */
INLINE v4 guess(table_t *table, int mode, v4 dens, v4 abar, v4 zbar, v4 goal)
{
    v4 particles = table->gas_constant * (1.0 + zbar) / abar, a = splat(table->radiation), gas, light;
    v4 least = splat(1.0e-300);
    if (mode == PW_HELMHOLTZ_ENERGY) {
        gas = logarithm(larger(goal / (1.5 * particles), least));
        light = 0.25 * logarithm(larger(goal * dens / a, least));
    } else if (mode == PW_HELMHOLTZ_PRESSURE) {
        gas = logarithm(larger(goal / (dens * particles), least));
        light = 0.25 * logarithm(larger(3.0 * goal / a, least));
    } else {
        gas = (goal / particles - 2.5 - table->ln_sackur_tetrode + logarithm(dens) - 2.5 * logarithm(abar)) * (2.0 / 3.0);
        light = (1.0 / 3.0) * logarithm(larger(0.75 * goal * dens / a, least));
        light = choose(goal > 0.0, light, gas);
    }
    return exponential(smaller(larger(smaller(gas, light), splat(table->first_v)), splat(table->last_v)));
}

/* Read a chunk's n zones and locate them in the table. Returns the fault of the first bad one. */
NOINLINE int32_t take_in(table_t *table, int mode, int64_t n, const double *const *columns, struct place *place,
                         double *given, int64_t *bad)
{
    int64_t padded = (n + lanes - 1) / lanes * lanes;
    for (int64_t i = 0; i < padded; i++) {
        int64_t from = i < n ? i : n - 1;
        place->dens[i] = columns[c_dens][from];
        place->temp[i] = columns[c_temp][from];
        place->abar[i] = columns[c_abar][from];
        place->zbar[i] = columns[c_zbar][from];
    }
    if (mode != PW_HELMHOLTZ_TEMPERATURE) {
        const double *from = columns[mode == PW_HELMHOLTZ_ENERGY ? c_eint : mode == PW_HELMHOLTZ_PRESSURE ? c_pres : c_entr];
        for (int64_t i = 0; i < padded; i++) given[i] = from[i < n ? i : n - 1];
    }
    const double lowest = table->lowest, highest = table->highest, coldest = table->coldest, hottest = table->hottest;
    m4 fine = {-1, -1, -1, -1};
    for (int64_t i = 0; i < padded; i += lanes) {
        v4 dens = load(place->dens + i), abar = load(place->abar + i), zbar = load(place->zbar + i);
        v4 x = dens * zbar / abar, temp = load(place->temp + i);
        fine &= (dens > 0.0) & (abar > 0.0) & (zbar > 0.0) & (x >= lowest) & (x <= highest);
        if (mode == PW_HELMHOLTZ_TEMPERATURE) {
            fine &= (temp >= coldest) & (temp <= hottest);
        } else {
            v4 goal = load(given + i);
            fine &= (goal - goal) == 0.0;
            v4 best = smaller(larger(temp, splat(coldest)), splat(hottest));
            m4 none = ~(temp > 0.0);
            if (any(none)) best = choose(none, guess(table, mode, dens, abar, zbar, goal), best);
            store(place->temp + i, best);
        }
    }
    if (any(~fine)) {
        for (int64_t i = 0; i < n; i++) {
            double x = place->dens[i] * place->zbar[i] / place->abar[i];
            int32_t wrong = PW_HELMHOLTZ_FINE;
            *bad = i;
            if (!(place->dens[i] > 0.0))
                wrong = PW_HELMHOLTZ_DENSITY;
            else if (!(place->abar[i] > 0.0) || !(place->zbar[i] > 0.0))
                wrong = PW_HELMHOLTZ_COMPOSITION;
            else if (!(x >= lowest && x <= highest))
                wrong = PW_HELMHOLTZ_DENSITY_RANGE;
            else if (mode == PW_HELMHOLTZ_TEMPERATURE && !(place->temp[i] >= coldest && place->temp[i] <= hottest))
                wrong = PW_HELMHOLTZ_TEMPERATURE_RANGE;
            else if (mode != PW_HELMHOLTZ_TEMPERATURE && !(given[i] - given[i] == 0.0))
                wrong = PW_HELMHOLTZ_GIVEN;
            if (wrong != PW_HELMHOLTZ_FINE) return wrong;
        }
    }
    find(table, place, padded / lanes);
    return PW_HELMHOLTZ_FINE;
}

/* Complete a zone again without Coulomb corrections, which is valid where they would make pressure or energy negative.
   Unless its state with corrections is invalid (`must`), that state stays if it is the only valid one, or no farther from
   the first guess `hint` (0 or less: none). */
NOINLINE int32_t leave_out(table_t *table, int mode, int few, double *const *columns, int64_t zone, double given, double hint,
                           bool must)
{
    const double rounding = 1.0e-10;
    struct pw_helmholtz_table plain = *table;
    double lane[c_npos + 1] = {0}, with[c_npos + 1];
    int64_t bad;
    plain.coulomb = 0;
    lane[c_dens] = columns[c_dens][zone];
    lane[c_temp] = hint;
    lane[c_abar] = columns[c_abar][zone];
    lane[c_zbar] = columns[c_zbar][zone];
    lane[mode == PW_HELMHOLTZ_ENERGY ? c_eint : mode == PW_HELMHOLTZ_PRESSURE ? c_pres : c_entr] = given;
    int32_t wrong = pw_helmholtz_rows(&plain, mode, few, 1, 1, lane, &bad);
    if (!must) {
        if (wrong || !(hint * hint < columns[c_temp][zone] * lane[c_temp])) return PW_HELMHOLTZ_FINE;
        memcpy(with, lane, sizeof lane);
        if (pw_helmholtz_rows(table, PW_HELMHOLTZ_TEMPERATURE, 1, 1, 1, with, &bad)) return PW_HELMHOLTZ_FINE;
        int free = mode == PW_HELMHOLTZ_PRESSURE ? c_eint : c_pres;
        if (!(with[free] - lane[free] < rounding * lane[free] && lane[free] - with[free] < rounding * lane[free]))
            return PW_HELMHOLTZ_FINE;
    }
    if (wrong) return wrong;
    for (int c = 0; c <= (few ? c_cs : c_npos); c++) columns[c][zone] = lane[c];
    return PW_HELMHOLTZ_FINE;
}

/* Complete a chunk that was read; `ahead` as in look_up. */
NOINLINE int32_t complete(table_t *table, int mode, int few, int64_t n, double *const *columns, struct place *place,
                          const double *given, const int64_t *ahead, int64_t *bad)
{
    COLUMN coulomb[chunk], ambiguous[chunk], rest[c_npos + 1][chunk];
    double hint[chunk];
    double *out[c_npos + 1];
    struct electrons electrons;
    int64_t n_groups = (n + lanes - 1) / lanes;

    if (mode != PW_HELMHOLTZ_TEMPERATURE) {
        struct search s;
        COLUMN wrong[chunk];
        memcpy(hint, columns[c_temp], (size_t)n * sizeof(double));
        begin_search(table, place, given, mode, n_groups, &s, ambiguous);
        /* Lanes beyond n repeat zone n and are searched for too, so that groups are complete. */
        if (mode == PW_HELMHOLTZ_ENERGY)
            search_energy(table, &s, lanes * n_groups, ahead, few, place->temp, wrong);
        else if (mode == PW_HELMHOLTZ_PRESSURE)
            search_pressure(table, &s, lanes * n_groups, ahead, few, place->temp, wrong);
        else
            search_entropy(table, &s, lanes * n_groups, ahead, few, place->temp, wrong);
        ahead = NULL;
        for (int64_t i = 0; i < n; i++) {
            *bad = i;
            if (wrong[i] > 0.0) return (int32_t)wrong[i];
        }
        find(table, place, n_groups);
        memcpy(columns[c_temp], place->temp, (size_t)n * sizeof(double));
    }

    /* Complete groups are stored at once; given quantities stay unchanged. */
    bool whole = n == lanes * n_groups;
    for (int c = 0; c <= c_npos; c++) out[c] = whole ? columns[c] : rest[c];
    int kept = mode == PW_HELMHOLTZ_ENERGY ? c_eint : mode == PW_HELMHOLTZ_PRESSURE ? c_pres : c_entr;
    if (mode != PW_HELMHOLTZ_TEMPERATURE) out[kept] = rest[kept];
    for (int64_t i = 0; i < lanes * n_groups; i++) coulomb[i] = table->coulomb ? 1.0 : 0.0;
    look_up(table, place, ahead, few, n_groups, &electrons);
    if (few) {
        assemble_few(table, place, &electrons, n_groups, coulomb, out);
    } else {
        look_up_positrons(table, place, n_groups, &electrons);
        assemble_all(table, place, &electrons, n_groups, coulomb, out);
    }
    if (!whole) {
        for (int c = c_eint; c <= (few ? c_cs : c_npos); c++)
            if (mode == PW_HELMHOLTZ_TEMPERATURE || c != kept) memcpy(columns[c], rest[c], (size_t)n * sizeof(double));
    }
    if (mode == PW_HELMHOLTZ_TEMPERATURE || !table->coulomb) return PW_HELMHOLTZ_FINE;

    /* With little heat and strong Coulomb binding two temperatures may exist, the lower one without corrections. */
    for (int64_t i = 0; i < n; i++) {
        bool inconsistent = coulomb[i] <= 0.0;
        if (!inconsistent && !(hint[i] > 0.0 && ambiguous[i] > 0.0 && place->ln_coupling[i] > ln_least_coupling)) continue;
        int32_t wrong = leave_out(table, mode, few, columns, i, given[i], hint[i], inconsistent);
        *bad = i;
        if (wrong) return wrong;
    }
    return PW_HELMHOLTZ_FINE;
}

/* The columns of a chunk; returns its zones. */
INLINE int64_t point_at(double *state, int64_t stride, int64_t first, int64_t n, double **columns)
{
    for (int c = 0; c <= c_npos; c++) columns[c] = state + c * stride + first;
    return n - first < chunk ? n - first : chunk;
}

#if defined(PW_PREFETCH_SOFTWARE)

/* Each chunk is read while the previous one waits, so that the cells of zones at `distance` are known. */
int32_t pw_helmholtz_rows(table_t *table, int32_t mode, int32_t few, int64_t n, int64_t stride, double *state, int64_t *zone)
{
    struct place place[2];
    COLUMN given[2][chunk];
    double *columns[2][c_npos + 1];
    int64_t part[2], ahead[chunk], bad = 0, distance = table->distance < chunk ? table->distance : chunk;
    int32_t wrong[2];
    if (n < 1) return PW_HELMHOLTZ_FINE;
    part[0] = point_at(state, stride, 0, n, columns[0]);
    wrong[0] = take_in(table, mode, part[0], (const double *const *)columns[0], &place[0], given[0], zone);
    if (wrong[0]) return wrong[0];
    for (int64_t first = 0, now = 0; first < n; first += chunk, now = 1 - now) {
        int64_t next = 1 - now, cells = part[now];
        wrong[next] = PW_HELMHOLTZ_FINE;
        if (first + chunk < n) {
            part[next] = point_at(state, stride, first + chunk, n, columns[next]);
            wrong[next] =
                take_in(table, mode, part[next], (const double *const *)columns[next], &place[next], given[next], &bad);
            if (!wrong[next]) cells += part[next];
        }
        for (int64_t i = 0; i < chunk; i++) {
            int64_t at = i + distance < cells ? i + distance : cells - 1;
            ahead[i] = at < chunk ? place[now].cell[at] : place[next].cell[at - chunk];
        }
        wrong[now] = complete(table, mode, few, part[now], columns[now], &place[now], given[now], ahead, zone);
        *zone += first;
        if (wrong[now]) return wrong[now];
        *zone = bad + first + chunk;
        if (wrong[next]) return wrong[next];
    }
    return PW_HELMHOLTZ_FINE;
}

#else

int32_t pw_helmholtz_rows(table_t *table, int32_t mode, int32_t few, int64_t n, int64_t stride, double *state, int64_t *zone)
{
    struct place place;
    COLUMN given[chunk];
    double *columns[c_npos + 1];
    for (int64_t first = 0; first < n; first += chunk) {
        int64_t part = point_at(state, stride, first, n, columns);
        int32_t wrong = take_in(table, mode, part, (const double *const *)columns, &place, given, zone);
#if defined(PW_PREFETCH_BLOCK)
        /* All cells of the chunk, before any zone is processed. */
        for (int64_t i = 0; i < part && !wrong; i++) prefetch(table, place.cell[i], few);
#endif
        if (!wrong) wrong = complete(table, mode, few, part, columns, &place, given, NULL, zone);
        *zone += first;
        if (wrong) return wrong;
    }
    return PW_HELMHOLTZ_FINE;
}

#endif
