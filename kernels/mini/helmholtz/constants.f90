!> The physical constants of the equation of state, in cgs units and K.
!>
!> CODATA 2022 (Mohr, Newell, Taylor and Tiesinga, Rev. Mod. Phys. 97, 025002, 2025; https://physics.nist.gov/constants). Of the
!> SI, c, h, e, k and N_A are exact by definition; the electron's mass is measured (relative uncertainty 3.1e-10).
module helmholtz_constants
    use pw_kinds, only: r8
    implicit none
    private

    character(*), parameter, public :: constants_source = 'CODATA 2022'

    real(r8), parameter, public :: pi = 3.14159265358979323846264338327950288_r8
    real(r8), parameter, public :: speed_of_light = 2.99792458e10_r8             !< [cm/s]
    real(r8), parameter, public :: planck = 6.62607015e-27_r8                    !< [erg s]
    real(r8), parameter, public :: boltzmann = 1.380649e-16_r8                   !< [erg/K]
    real(r8), parameter, public :: avogadro = 6.02214076e23_r8                   !< [1/mol]; u per gram, to 1e-9
    real(r8), parameter, public :: electron_mass = 9.1093837139e-28_r8           !< [g]
    real(r8), parameter, public :: elementary_charge = 4.80320471257026372e-10_r8  !< [esu] = 1.602176634e-19 C * c/(cm/s)/10

    ! Derived constants.
    real(r8), parameter, public :: reduced_planck = planck/(2.0_r8*pi)                        !< [erg s]
    real(r8), parameter, public :: electron_rest_energy = electron_mass*speed_of_light**2    !< [erg]
    real(r8), parameter, public :: compton_wavelength = planck/(electron_mass*speed_of_light) !< [cm]
    !> 8 pi^5 k^4 / (15 (h c)^3) [erg/(cm^3 K^4)]; evaluated in an order that does not underflow.
    real(r8), parameter, public :: radiation_constant = &
        8.0_r8*pi**5/15.0_r8*boltzmann*(boltzmann/(planck*speed_of_light))**3
    real(r8), parameter, public :: gas_constant = avogadro*boltzmann                          !< [erg/(mol K)]
    !> The mass of a particle of mean mass number 1, by rho = n A / N_A [g].
    real(r8), parameter, public :: nucleon_mass = 1.0_r8/avogadro

end module helmholtz_constants
