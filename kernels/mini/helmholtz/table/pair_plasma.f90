!> Electrons and positrons in equilibrium: the free energy and its derivatives at a density and a temperature.
!>
!> Three methods cover the plane: the fugacity series if eta is at most -3, Sommerfeld's expansion if the Fermi energy is at
!> least 50 kT, the trapezoidal rule between; each is correct to many more digits than the table requires, also beyond its
!> bounds.
module eos_table_pair_plasma
    use eos_table_boltzmann, only: boltzmann_most, isotherm_t
    use eos_table_cold, only: cold_point, fermi_momentum, kinetic_energy
    use eos_table_fermi_dirac, only: fermi_dirac_point
    use eos_table_sommerfeld, only: kernel_moments, sommerfeld_expansion, sommerfeld_least
    use eos_table_taylor, only: one_plus_xi, operator(*), taylor_t
    use helmholtz_constants, only: avogadro, boltzmann, compton_wavelength, electron_rest_energy, pi
    use pw_error, only: error_t, exit_check
    use pw_kinds, only: r8
    use pw_text, only: to_text
    implicit none
    private

    integer, parameter, public :: n_functions = 9        !< f, f_x, f_T, f_xx, f_TT, f_xT, f_xxT, f_xTT, f_xxTT
    integer, parameter, public :: n_positron_values = 4  !< ln n_pos, d/dx, d/dT, d2/dxdT
    ! The orders of each function's derivatives in x and in T, and of those of the positrons.
    integer, parameter :: in_x(n_functions) = [0, 1, 0, 2, 0, 1, 2, 1, 2]
    integer, parameter :: in_t(n_functions) = [0, 0, 1, 0, 2, 1, 1, 2, 2]
    integer, parameter :: positrons_in_x(n_positron_values) = [0, 1, 0, 1], positrons_in_t(n_positron_values) = [0, 0, 1, 1]

    !> dP/dx and its derivatives d/dx, d/dT, d2/dxdT [erg/g], and the same of eta (the chemical potential without rest mass over
    !> kT).
    integer, parameter, public :: n_pressure_eta = 8
    integer, parameter, public :: method_any = 0, method_boltzmann = 1, method_fermi_dirac = 2, method_sommerfeld = 3
    integer, parameter :: n_moments = 17

    real(r8), parameter, public :: unit_density = 8.0_r8*pi/compton_wavelength**3   !< n_0 = 8 pi (m c/h)^3 [1/cm^3]

    !> All that is needed at one temperature.
    type, public :: plasma_t
        private
        real(r8) :: temperature = 0.0_r8
        real(r8) :: moments(n_moments) = 0.0_r8
        type(isotherm_t) :: isotherm
    contains
        procedure :: start
        procedure :: point
    end type plasma_t

    public :: cold_electrons

contains

    !> The free energy per gram, f [erg/g], of cold electrons at x = rho Ye [g/cm^3], and its first and second derivative in x.
    pure function cold_electrons(x) result(f)
        real(r8), intent(in) :: x
        real(r8) :: f(3)

        f = avogadro*electron_rest_energy*cold_point(avogadro*x/unit_density)/[1.0_r8, x, x**2]
    end function cold_electrons

    !> Set the temperature [K].
    subroutine start(self, temperature)
        class(plasma_t), intent(inout) :: self
        real(r8), intent(in) :: temperature

        self%temperature = temperature
        self%moments = kernel_moments(n_moments)
        call self%isotherm%start(temperature*(boltzmann/electron_rest_energy))
    end subroutine start

    !> At x = rho Ye [g/cm^3]: the nine functions of the thermal part of the free energy f [erg/g, per g/cm^3 and K], the four
    !> of the positrons' number density [1/cm^3], and dP/dx and eta. `method` selects one method,
    !> in tests. No solution: exit_check.
    subroutine point(self, x, thermal, positrons, error, method, pressure_eta)
        class(plasma_t), intent(in) :: self
        real(r8), intent(in) :: x
        real(r8), intent(out) :: thermal(n_functions), positrons(n_positron_values)
        type(error_t), intent(inout) :: error
        integer, intent(in), optional :: method
        real(r8), intent(out), optional :: pressure_eta(n_pressure_eta)
        type(taylor_t) :: u, w, ln_positrons
        integer :: i
        logical :: ok

        if (present(method)) then
            call solve(self, avogadro*x/unit_density, method, u, w, ln_positrons, ok)
        else
            call solve(self, avogadro*x/unit_density, method_any, u, w, ln_positrons, ok)
        end if
        do i = 1, n_functions
            thermal(i) = avogadro*electron_rest_energy*derivative(u, in_x(i), in_t(i), x, self%temperature)
        end do
        do i = 1, n_positron_values
            positrons(i) = derivative(ln_positrons, positrons_in_x(i), positrons_in_t(i), x, self%temperature)
        end do
        positrons(1) = positrons(1) + log(unit_density)
        if (present(pressure_eta)) pressure_eta = pressure_and_eta(self, x, w)
        ! Comparisons with NaN are false.
        ok = ok .and. all(abs(thermal) <= huge(1.0_r8)) .and. all(abs(positrons) <= huge(1.0_r8))
        if (present(pressure_eta)) ok = ok .and. all(abs(pressure_eta) <= huge(1.0_r8))
        if (.not. ok) &
            call error%raise(exit_check, 'no chemical potential found for rho Ye = '//to_text(x, 'es12.5')//' g/cm^3, T = '// &
                             to_text(self%temperature, 'es12.5')//' K', 'eos_table_pair_plasma', &
                             'report this bug: the method must work from 1e-12 to 1e15 g/cm^3 and 1e3 to 1e13 K')
    end subroutine point

    !> At a density n [n_0], by a method: u and w [m c^2], the thermal part of the free energy per net electron and the
    !> chemical potential without rest mass, and the logarithm of the positrons' density [n_0].
    subroutine solve(self, n, method, u, w, ln_positrons, ok)
        class(plasma_t), intent(in) :: self
        real(r8), intent(in) :: n
        integer, intent(in) :: method
        type(taylor_t), intent(out) :: u, w, ln_positrons
        logical, intent(out) :: ok
        integer :: way

        way = method
        if (way == method_any) then
            way = method_fermi_dirac
            if (kinetic_energy(fermi_momentum(n)) >= sommerfeld_least*self%isotherm%beta) then
                way = method_sommerfeld
            else if (self%isotherm%classical_eta(n) <= boltzmann_most) then
                way = method_boltzmann
            end if
        end if
        ok = .true.
        select case (way)
        case (method_boltzmann)
            call self%isotherm%series(n, u, w, ln_positrons)
        case (method_sommerfeld)
            call sommerfeld_expansion(self%isotherm, self%moments, n, u, w, ln_positrons)
        case default
            call fermi_dirac_point(self%isotherm, n, u, w, ln_positrons, ok)
        end select
    end subroutine solve

    !> dP/dx and eta, with their derivatives, from the chemical potential w [m c^2].
    pure function pressure_and_eta(self, x, w) result(values)
        class(plasma_t), intent(in) :: self
        real(r8), intent(in) :: x
        type(taylor_t), intent(in) :: w
        real(r8) :: values(n_pressure_eta)
        type(taylor_t) :: stiffness, eta

        ! dP = n dw at constant temperature, so that dP/dx = x dw/dx per gram: the derivative of Taylor's terms in xi.
        stiffness%c(0:1, :) = reshape([w%c(1, 0), 2.0_r8*w%c(2, 0), w%c(1, 1), 2.0_r8*w%c(2, 1), 0.0_r8, 0.0_r8], [2, 3])
        stiffness = (avogadro*electron_rest_energy)*(one_plus_xi(1.0_r8)*stiffness)
        eta = w*self%isotherm%inverse
        values = [four(stiffness), four(eta)]

    contains

        !> The value, d/dx, d/dT, d2/dxdT.
        pure function four(a) result(d)
            type(taylor_t), intent(in) :: a
            real(r8) :: d(4)
            integer :: i

            d = [(derivative(a, positrons_in_x(i), positrons_in_t(i), x, self%temperature), i=1, 4)]
        end function four

    end function pressure_and_eta

    !> The derivative, i times in x and j times in T.
    pure real(r8) function derivative(a, i, j, x, t)
        type(taylor_t), intent(in) :: a
        integer, intent(in) :: i, j
        real(r8), intent(in) :: x, t
        real(r8), parameter :: factorial(0:2) = [1.0_r8, 1.0_r8, 2.0_r8]

        derivative = a%c(i, j)*factorial(i)*factorial(j)/(x**i*t**j)
    end function derivative

end module eos_table_pair_plasma
