!> The equation of state of degenerate matter (module `helmholtz`) for the zones of a mesh with species.
!>
!> A species is a kind of nucleus, or a mixture of fixed composition: mean mass number A and charge Z. In a zone with mass
!> fractions X the mean mass number is 1/sum(X/A), the mean charge that times sum(X Z/A).
!>
!> In strongly degenerate matter heat is a small part of the energy, 1e-4 and less, and the error of a step may leave
!> less energy than matter at zero temperature. Matter is therefore never colder than `coldest`: below the energy at that
!> temperature it gets that energy. The added energy is counted (ember_hydro_work, ledger_t).
module ember_helmholtz_eos
    use ember_eos, only: eos_t
    use helmholtz, only: helmholtz_t
    use helmholtz_columns, only: c_abar, c_dens, c_eint, c_gam1, c_pres, c_temp, c_zbar, given_energy, given_temperature, n_columns
    use pw_error, only: error_t
    use pw_kinds, only: r8
    use pw_pages, only: pages_policy_t
    implicit none
    private

    !> Energies at the lowest temperature are interpolated over the logarithm of the density, with this number of points per
    !> decade.
    real(r8), parameter :: first_decade = -8.0_r8, last_decade = 12.0_r8
    integer, parameter :: a_decade = 64, n_points = nint(last_decade - first_decade)*a_decade + 1
    real(r8), parameter :: step = log(10.0_r8)/a_decade, first_log = first_decade*log(10.0_r8)

    type, extends(eos_t), public :: helmholtz_eos_t
        type(helmholtz_t) :: table
        real(r8), allocatable :: mass_number(:), charge(:)    !< of the species
        real(r8) :: coldest = 0.0_r8                          !< [K]
        real(r8), allocatable, private :: least(:, :)         ! (point, species) energy at `coldest` [erg/g]
    contains
        procedure :: start
        procedure :: rows
        procedure :: at_temperature
        procedure :: is_simple
        procedure, private :: mix, raise_cold
    end type helmholtz_eos_t

contains

    !> Read the table `path` onto pages of `policy`. `mass_number`, `charge`: of the species; `coldest` [K]. Errors: those of the
    !> table.
    subroutine start(self, path, policy, mass_number, charge, coldest, error)
        class(helmholtz_eos_t), intent(inout) :: self
        character(*), intent(in) :: path
        type(pages_policy_t), intent(in) :: policy
        real(r8), intent(in) :: mass_number(:), charge(:), coldest
        type(error_t), intent(inout) :: error
        real(r8), allocatable :: fraction(:, :)
        real(r8), dimension(n_points) :: dens, temp, pres, gamc
        integer :: i, s

        call self%table%load(path, policy, error)
        if (error%failed()) return
        self%mass_number = mass_number
        self%charge = charge
        self%coldest = coldest
        allocate (self%least(n_points, size(mass_number)))
        dens = [(exp(first_log + (i - 1)*step), i=1, n_points)]
        temp = coldest
        do s = 1, size(mass_number)
            allocate (fraction(n_points, size(mass_number)), source=0.0_r8)
            fraction(:, s) = 1.0_r8
            call self%at_temperature(n_points, dens, fraction, temp, self%least(:, s), pres, gamc, error)
            deallocate (fraction)
            if (error%failed()) return
        end do
    end subroutine start

    !> As eos_t%rows; `temp` > 0 is the first guess.
    subroutine rows(self, n, dens, fraction, eint, temp, pres, gamc, error)
        class(helmholtz_eos_t), intent(in) :: self
        integer, intent(in) :: n
        real(r8), intent(in) :: dens(n)
        real(r8), contiguous, intent(in) :: fraction(:, :)
        real(r8), intent(inout) :: eint(n), temp(n)
        real(r8), intent(out) :: pres(n), gamc(n)
        type(error_t), intent(inout) :: error
        real(r8), allocatable :: state(:, :)

        allocate (state(n, n_columns))
        call self%mix(n, fraction, state)
        call self%raise_cold(n, dens, fraction, eint)
        state(:, c_dens) = dens
        state(:, c_eint) = eint
        state(:, c_temp) = temp
        call self%table%rows(given_energy, n, state, error, few=.true.)
        temp = state(:, c_temp)
        pres = state(:, c_pres)
        gamc = state(:, c_gam1)
    end subroutine rows

    !> Energy, pressure and adiabatic index from density and temperature.
    subroutine at_temperature(self, n, dens, fraction, temp, eint, pres, gamc, error)
        class(helmholtz_eos_t), intent(in) :: self
        integer, intent(in) :: n
        real(r8), intent(in) :: dens(n), temp(n)
        real(r8), contiguous, intent(in) :: fraction(:, :)
        real(r8), intent(out) :: eint(n), pres(n), gamc(n)
        type(error_t), intent(inout) :: error
        real(r8), allocatable :: state(:, :)

        allocate (state(n, n_columns))
        call self%mix(n, fraction, state)
        state(:, c_dens) = dens
        state(:, c_temp) = temp
        call self%table%rows(given_temperature, n, state, error, few=.true.)
        eint = state(:, c_eint)
        pres = state(:, c_pres)
        gamc = state(:, c_gam1)
    end subroutine at_temperature

    pure logical function is_simple(self)
        class(helmholtz_eos_t), intent(in) :: self

        associate (unused => self)
        end associate
        is_simple = .false.
    end function is_simple

    !> Set the mean mass numbers and charges of n zones.
    subroutine mix(self, n, fraction, state)
        class(helmholtz_eos_t), intent(in) :: self
        integer, intent(in) :: n
        real(r8), contiguous, intent(in) :: fraction(:, :)
        real(r8), contiguous, intent(inout) :: state(:, :)
        real(r8) :: nuclei(n), electrons(n), whole(n), share
        integer :: i, s

        nuclei = 0.0_r8
        electrons = 0.0_r8
        whole = 0.0_r8
        do s = 1, size(self%mass_number)
            do i = 1, n
                share = max(fraction(i, s), 0.0_r8)
                whole(i) = whole(i) + share
                nuclei(i) = nuclei(i) + share/self%mass_number(s)
                electrons(i) = electrons(i) + share*(self%charge(s)/self%mass_number(s))
            end do
        end do
        state(1:n, c_abar) = whole/nuclei
        state(1:n, c_zbar) = electrons/nuclei
    end subroutine mix

    !> Give matter that would be too cold the lowest allowed energy: by cubic interpolation per species, for a
    !> mixture their mean.
    subroutine raise_cold(self, n, dens, fraction, eint)
        class(helmholtz_eos_t), intent(in) :: self
        integer, intent(in) :: n
        real(r8), intent(in) :: dens(n)
        real(r8), contiguous, intent(in) :: fraction(:, :)
        real(r8), intent(inout) :: eint(n)
        real(r8) :: place, x, weight(4), least
        integer :: i, k, s

        do i = 1, n
            if (.not. dens(i) > 0.0_r8) cycle
            place = (log(dens(i)) - first_log)/step
            if (.not. (place > 1.0_r8 .and. place < n_points - 3.0_r8)) cycle
            k = int(place)
            x = place - k
            weight(1) = -x*(x - 1.0_r8)*(x - 2.0_r8)/6.0_r8
            weight(2) = (x + 1.0_r8)*(x - 1.0_r8)*(x - 2.0_r8)/2.0_r8
            weight(3) = -(x + 1.0_r8)*x*(x - 2.0_r8)/2.0_r8
            weight(4) = (x + 1.0_r8)*x*(x - 1.0_r8)/6.0_r8
            least = 0.0_r8
            do s = 1, size(self%mass_number)
                least = least + fraction(i, s)*sum(weight*self%least(k:k + 3, s))
            end do
            if (eint(i) < least) eint(i) = least   ! not if it is NaN
        end do
    end subroutine raise_cold

end module ember_helmholtz_eos
