/* All quantities of rows.c from density and temperature: electrons, ions, radiation, Coulomb corrections. */
#ifndef PW_HELMHOLTZ_ROWS_STATE_H
#define PW_HELMHOLTZ_ROWS_STATE_H

#if defined(PW_TABLE_ARRAYS)
#include "rows_arrays.h"
#else
#include "rows_nodes.h"
#endif

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
        store_integers(place->cell + i, first_node(table, cell_u, cell_v));
    }
}

/* All quantities of a chunk's zones, whose rows begin at `state`; `coulomb`: 1, or 0 for the zones without corrections. On
   return it is also 0 for those in which they would make pressure or energy negative. */
/* NOLINTNEXTLINE(readability-function-size): the sums of one zone, which stay in registers. */
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

        /* Electrons and positrons: f = cold - a; derivatives with respect to u and v as in docs/reference/helmholtz.md. */
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
        v4 pres_u = x * slope_of_pressure(electrons, i, f_u + f_uu);  /* rho dp/drho */
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
        v4 n_net = table->avogadro * x, n_pos = exponential(load(electrons->positrons + i));
        v4 eta = (cold + cold_u - a * (1.0 + g_u)) * (1.0 / gas) * per_temp;
        store(columns[c_eta] + i, degeneracy(table, electrons, i, eta, per_temp, n_net, n_pos));
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

#endif
