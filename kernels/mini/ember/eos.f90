!> Equations of state over rows of zones.
!>
!> An equation of state extends `eos_t`. The gamma law is p = (gamma - 1) rho e with a constant gamma, and
!> T = p mu/(rho R): density rho [g/cm^3], specific internal energy e [erg/g], pressure p [erg/cm^3], temperature T [K],
!> mean molecular weight mu [g/mol], gas constant R [erg/(mol K)]. With other units of mass, length and time p and rho e
!> keep their relation, and `gas_constant` sets the unit of the temperature.
module ember_eos
    use pw_error, only: error_t, exit_check
    use pw_kinds, only: r8
    use pw_text, only: to_text
    implicit none
    private

    !> CODATA 2018 [erg/(mol K)].
    real(r8), parameter, public :: cgs_gas_constant = 8.31446261815324e7_r8

    type, abstract, public :: eos_t
    contains
        procedure(rows_of), deferred :: rows
        procedure(is_it_simple), deferred :: is_simple
    end type eos_t

    abstract interface
        !> The state of a row of `n` zones from density `dens`, mass fractions of the mesh's species, (n, species), and specific
        !> internal energy `eint`: temperature `temp` (a first guess on entry), pressure `pres`, and `gamc`, the adiabatic index
        !> d ln(p)/d ln(rho) at constant entropy, so that the speed of sound is sqrt(gamc*pres/dens). All other arrays: (n).
        !> Matter that would be colder than the equation of state supports gets the lowest energy instead, in `eint`.
        !> Thread-safe. exit_check, with the zone's index in the row, if the state does not exist: `temp`, `pres`, `gamc` are
        !> then undefined.
        subroutine rows_of(self, n, dens, fraction, eint, temp, pres, gamc, error)
            import :: eos_t, error_t, r8
            class(eos_t), intent(in) :: self
            integer, intent(in) :: n
            real(r8), intent(in) :: dens(n)
            real(r8), contiguous, intent(in) :: fraction(:, :)
            real(r8), intent(inout) :: eint(n), temp(n)
            real(r8), intent(out) :: pres(n), gamc(n)
            type(error_t), intent(inout) :: error
        end subroutine rows_of

        !> Whether the pressure is (gamma - 1)*dens*eint with one constant gamma, so that a caller can write it out
        !> instead of calling `rows`; such a type extends `gamma_law_t`.
        pure logical function is_it_simple(self)
            import :: eos_t
            class(eos_t), intent(in) :: self
        end function is_it_simple
    end interface

    !> A perfect gas.
    type, extends(eos_t), public :: gamma_law_t
        real(r8) :: gamma = 1.4_r8
        real(r8) :: weight = 1.0_r8                     !< mean molecular weight [g/mol]
        real(r8) :: gas_constant = cgs_gas_constant     !< [erg/(mol K)]
    contains
        procedure :: rows => gamma_law_rows
        procedure :: is_simple => gamma_law_is_simple
    end type gamma_law_t

contains

    subroutine gamma_law_rows(self, n, dens, fraction, eint, temp, pres, gamc, error)
        class(gamma_law_t), intent(in) :: self
        integer, intent(in) :: n
        real(r8), intent(in) :: dens(n)
        real(r8), contiguous, intent(in) :: fraction(:, :)   ! one gas of any composition
        real(r8), intent(inout) :: eint(n), temp(n)
        real(r8), intent(out) :: pres(n), gamc(n)
        type(error_t), intent(inout) :: error
        real(r8) :: gamma, kelvin
        integer :: i, wrong

        gamma = self%gamma
        kelvin = (gamma - 1.0_r8)*self%weight/self%gas_constant
        wrong = 0
        associate (unused => fraction)
        end associate
        ! Counting, unlike leaving at the first, keeps the loop vectorised; NaN fails both comparisons.
        do i = 1, n
            wrong = wrong + merge(0, 1, dens(i) > 0.0_r8) + merge(0, 1, eint(i) > 0.0_r8)
            pres(i) = (gamma - 1.0_r8)*dens(i)*eint(i)
            temp(i) = kelvin*eint(i)
            gamc(i) = gamma
        end do
        if (wrong > 0) call name_wrong_zone(dens, eint, error)
    end subroutine gamma_law_rows

    pure logical function gamma_law_is_simple(self)
        class(gamma_law_t), intent(in) :: self

        gamma_law_is_simple = self%gamma > 1.0_r8
    end function gamma_law_is_simple

    !> Raise the error for the first zone of a row whose density or energy is not above zero.
    subroutine name_wrong_zone(dens, eint, error)
        real(r8), intent(in) :: dens(:), eint(:)
        type(error_t), intent(inout) :: error
        integer :: i

        do i = 1, size(dens)
            if (dens(i) > 0.0_r8 .and. eint(i) > 0.0_r8) cycle
            call error%raise(exit_check, 'no state of the gas in zone '//to_text(i)//' of a row: density '// &
                             to_text(dens(i), 'es12.4')//', specific internal energy '//to_text(eint(i), 'es12.4'), &
                             'ember_eos', 'use a smaller --cfl or --limiter minmod, which are more robust')
            return
        end do
    end subroutine name_wrong_zone

end module ember_eos
