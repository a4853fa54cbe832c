!> The species of burning carbon and oxygen, and the energy that they release.
module ember_nuclei
    use pw_kinds, only: r8
    implicit none
    private

    !> Mean mass numbers and charges of fuel, carbon 12 and oxygen 16 of equal masses, and of ash, nickel 56.
    real(r8), parameter, public :: mass_number(2) = [1.0_r8/(0.5_r8/12.0_r8 + 0.5_r8/16.0_r8), 56.0_r8]
    real(r8), parameter, public :: charge(2) = 0.5_r8*mass_number

    !> Binding energies per nucleon [MeV] of carbon 12, oxygen 16 and nickel 56: AME2020 (Wang et al., Chinese Phys. C 45
    !> (2021)
    !> 030003); and 1 MeV per nucleon in erg/g (CODATA 2022).
    real(r8), parameter :: carbon = 7.6801446_r8, oxygen = 7.9762072_r8, nickel = 8.6427671_r8
    real(r8), parameter :: mev = 1.602176634e-6_r8*6.02214076e23_r8

    !> Energy released by fuel that becomes ash [erg/g].
    real(r8), parameter, public :: carbon_to_nickel = (nickel - 0.5_r8*(carbon + oxygen))*mev

end module ember_nuclei
