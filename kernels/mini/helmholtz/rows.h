/* The equation of state over rows of zones; the Fortran side is the module helmholtz.

   Physics, table and method are described there and in docs/reference/helmholtz.md. Zones are processed four at a time
   by explicit vectors, the same code for all of them, so that a zone's result does not depend on the other zones of the row. */
#ifndef PW_HELMHOLTZ_ROWS_H
#define PW_HELMHOLTZ_ROWS_H

#include <stdint.h>

/* The quantity that is given in addition to the density. */
enum { PW_HELMHOLTZ_TEMPERATURE = 1, PW_HELMHOLTZ_ENERGY = 2, PW_HELMHOLTZ_PRESSURE = 3, PW_HELMHOLTZ_ENTROPY = 4 };

/* Columns of the state, counted from 0: those of the module helmholtz minus one. */
enum {
    c_dens, c_temp, c_abar, c_zbar, c_eint, c_pres, c_entr, c_gam1, c_cs,
    c_dedt, c_dedd, c_dpdt, c_dpdd, c_dsdt, c_dsdd, c_deda, c_dedz, c_dpda, c_dpdz, c_dsda, c_dsdz,
    c_cp, c_gam2, c_gam3, c_nabla, c_eta, c_nele, c_npos
};

/* Faults of a zone. */
enum {
    PW_HELMHOLTZ_FINE = 0,
    PW_HELMHOLTZ_COMPOSITION = 1,    /* abar or zbar not positive */
    PW_HELMHOLTZ_DENSITY = 2,        /* not positive, or NaN */
    PW_HELMHOLTZ_DENSITY_RANGE = 3,  /* rho*Ye outside the table */
    PW_HELMHOLTZ_TEMPERATURE_RANGE = 4,
    PW_HELMHOLTZ_TOO_LOW = 5,        /* no temperature of the table is low enough for the given quantity */
    PW_HELMHOLTZ_TOO_HIGH = 6,
    PW_HELMHOLTZ_NOT_FOUND = 7,      /* no convergence */
    PW_HELMHOLTZ_GIVEN = 8           /* the given quantity is not finite */
};

/* The table in memory, in one of two layouts: packed nodes (density i, temperature j), j fastest, or separate arrays (temperature
   j, density i), i fastest, one after another. u = ln(x/[g/cm^3]), v = ln(T/K), x = rho*Ye. */
struct pw_helmholtz_table {
    const double *thermal;    /* nodes: 9 per node: G, G_u, G_uu, G_v, G_uv, G_uuv, G_vv, G_uvv, G_uuvv, in units of the steps */
    const double *cold;       /* 3 per density: f, f_u, f_uu of the electrons at T = 0 [erg/g], per rho*Ye */
    const double *positrons;  /* nodes: 4 per node: ln(n_pos), and its derivatives with respect to u, v, uv */
    int64_t densities, temperatures;
    double first_u, step_u, first_v, step_v, last_u, last_v;
    double lowest, highest;   /* of x [g/cm^3] */
    double coldest, hottest;  /* of T [K] */
    double gas_constant;      /* [erg/(mol K)] */
    double avogadro;          /* [1/mol] */
    double radiation;         /* [erg/(cm^3 K^4)] */
    double speed_of_light;    /* [cm/s] */
    double rest_temperature;  /* m c^2/k of the electron [K] */
    double ln_sackur_tetrode; /* 1.5 ln(2 pi k/(N_A h^2)) - ln(N_A), with its quantities in cgs */
    double ln_coupling;       /* ln(e^2/k) + ln(4 pi N_A/3)/3, in cgs */
    int32_t coulomb;          /* 0: without Coulomb corrections */
    int32_t distance;         /* builds with prefetch=software: distance in zones */
    const double *arrays;     /* 21 of all nodes: the 9 of `thermal`; ln(dp/dx), eta, and the 4 of `positrons`, 4 each */
};

/* Complete n rows of `state` (n_columns columns, `stride` apart). Returns the fault of the first bad zone, whose index,
   from 0, is then in `zone`. `few`: only c_temp, c_eint, c_pres, c_entr, c_gam1, c_cs are completed. */
int32_t pw_helmholtz_rows(const struct pw_helmholtz_table *table, int32_t mode, int32_t few, int64_t n, int64_t stride,
                          double *state, int64_t *zone);

/* The same from the table's separate arrays. */
int32_t pw_helmholtz_rows_arrays(const struct pw_helmholtz_table *table, int32_t mode, int32_t few, int64_t n, int64_t stride,
                                 double *state, int64_t *zone);

#endif
