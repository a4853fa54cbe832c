!> The columns of a state of the Helmholtz equation of state, and the quantities that can be given.
module helmholtz_columns
    implicit none
    private

    !> The quantity that is given in addition to the density.
    integer, parameter, public :: given_temperature = 1, given_energy = 2, given_pressure = 3, given_entropy = 4

    !> Columns of a state; those of rows.h, counted from 1.
    integer, parameter, public :: &
        c_dens = 1, &    !< density rho [g/cm^3]
        c_temp = 2, &    !< temperature T [K]
        c_abar = 3, &    !< mean mass number A of the ions
        c_zbar = 4, &    !< mean charge number Z of the ions
        c_eint = 5, &    !< specific internal energy e [erg/g]
        c_pres = 6, &    !< pressure p [erg/cm^3]
        c_entr = 7, &    !< specific entropy s [erg/(g K)]
        c_gam1 = 8, &    !< d ln(p)/d ln(rho) at constant entropy
        c_cs = 9         !< speed of sound of a relativistic fluid [cm/s]
    integer, parameter, public :: &
        c_dedt = 10, c_dedd = 11, &                                  !< de/dT, de/drho
        c_dpdt = 12, c_dpdd = 13, &                                  !< dp/dT, dp/drho
        c_dsdt = 14, c_dsdd = 15, &                                  !< ds/dT, ds/drho
        c_deda = 16, c_dedz = 17, c_dpda = 18, c_dpdz = 19, c_dsda = 20, c_dsdz = 21, &   !< with respect to abar and zbar
        c_cp = 22, &     !< specific heat at constant pressure [erg/(g K)]
        c_gam2 = 23, &   !< 1/(1 - nabla)
        c_gam3 = 24, &   !< 1 + d ln(T)/d ln(rho) at constant entropy
        c_nabla = 25, &  !< d ln(T)/d ln(p) at constant entropy
        c_eta = 26, &    !< chemical potential of the electrons minus m c^2, divided by kT
        c_nele = 27, &   !< number of electrons, including those of pairs [1/cm^3]
        c_npos = 28      !< number of positrons [1/cm^3]
    integer, parameter, public :: c_cv = c_dedt                      !< specific heat at constant volume [erg/(g K)]
    integer, parameter, public :: n_columns = 28

end module helmholtz_columns
