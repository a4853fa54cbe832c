!> All functions of the table at points over the whole plane: against 90-digit references, by all valid methods, continuous
!> across their limits, and consistent with each other.
program test_pair_plasma
    use eos_table_pair_plasma, only: cold_electrons, method_any, method_boltzmann, method_fermi_dirac, method_sommerfeld, &
        n_functions, n_positron_values, n_pressure_eta, plasma_t
    use eos_table_testing, only: agree, expect, finish
    use pw_error, only: error_t, exit_check
    use pw_kinds, only: r8
    use pw_text, only: to_text
    implicit none
    character(*), parameter :: name(n_functions) = ['f     ', 'f_x   ', 'f_T   ', 'f_xx  ', 'f_TT  ', 'f_xT  ', 'f_xxT ', &
                                                    'f_xTT ', 'f_xxTT']
    real(r8), parameter :: unknown = huge(1.0_r8)
    real(r8), parameter :: wanted_accuracy = 1.0e-10_r8

    call references()
    call same_by_two_methods(1.0e-3_r8, 4.0e5_r8, method_boltzmann)
    call same_by_two_methods(1.0e-4_r8, 3.0e7_r8, method_boltzmann)
    call same_by_two_methods(1.0e-7_r8, 2.0e9_r8, method_boltzmann)
    call same_by_two_methods(1.0e2_r8, 1.2e5_r8, method_sommerfeld)
    call same_by_two_methods(1.0e9_r8, 6.5e8_r8, method_sommerfeld)
    call differences(1.0e-6_r8, 3.0e3_r8)
    call differences(3.0e3_r8, 2.0e7_r8)
    call differences(2.0e9_r8, 4.0e8_r8)
    call differences(1.0e4_r8, 4.0e9_r8)
    call cold()
    ! P_x, P_xx, P_xT, P_xxT; eta with d/dx, d/dT, d2/dxdT; P; f - T f_T. From derivatives in rho = x/Ye, Ye = 1/2, that
    ! an independent code prints: `eos_cond1` and the README of electron_positron_cxx (Zingale 2025, doi
    ! 10.5281/zenodo.16942327). P_xxT follows from its derivatives of eta, which the second output does not have (unknown).
    call published(5.0e3_r8, 1.0e7_r8, [ &
                   2.4375348e15_r8*2.0_r8, 1.5620074e11_r8*4.0_r8, 5973939.9_r8*2.0_r8, -522.96_r8*4.0_r8, &
                   8.6595364_r8, 5.8633609e-4_r8*2.0_r8, -8.8628633e-7_r8, -5.719661e-11_r8*2.0_r8], 1.5278125e19_r8, &
                   2.3048403e15_r8*2.0_r8)
    call published(5.0e-3_r8, 1.0e9_r8, [ &
                   1.1537126e11_r8*2.0_r8, 1.1537126e13_r8*4.0_r8, -771.69977_r8*2.0_r8, unknown, &
                   -5.9298938_r8, 2.7751945e-4_r8*2.0_r8, 5.9298752e-9_r8, -2.1338024e-12_r8*2.0_r8], 1.4998317e20_r8, &
                   1.1542588e23_r8*2.0_r8)
    call failure()
    call finish()

contains

    !> reference.csv, which reference.py made.
    subroutine references()
        type(plasma_t) :: plasma
        type(error_t) :: error
        real(r8) :: row(2 + n_functions + n_positron_values), thermal(n_functions), positrons(n_positron_values)
        character(1000) :: line
        integer :: unit, status, n, i

        n = 0
        open (newunit=unit, file='reference.csv', status='old', action='read')
        do
            read (unit, '(a)', iostat=status) line
            if (status /= 0) exit
            if (line(1:1) == '#' .or. line(1:1) == 'd') cycle
            read (line, *) row
            n = n + 1
            call plasma%start(row(2))
            call plasma%point(row(1), thermal, positrons, error)
            call expect(.not. error%failed(), 'a solution at '//where_at(row))
            do i = 1, n_functions
                call agree(name(i)//where_at(row), thermal(i), row(2 + i), wanted_accuracy)
            end do
            do i = 1, n_positron_values
                call agree('positrons '//to_text(i)//where_at(row), positrons(i), row(2 + n_functions + i), wanted_accuracy)
            end do
        end do
        close (unit)
        call expect(n >= 50, 'references are missing')
    end subroutine references

    function where_at(row) result(text)
        real(r8), intent(in) :: row(:)
        character(:), allocatable :: text

        text = ' at '//to_text(row(1), 'es9.2')//' g/cm^3, '//to_text(row(2), 'es9.2')//' K'
    end function where_at

    subroutine same_by_two_methods(x, t, method)
        real(r8), intent(in) :: x, t
        integer, intent(in) :: method
        type(plasma_t) :: plasma
        type(error_t) :: error
        real(r8) :: a(n_functions), b(n_functions), c(n_functions), pa(n_positron_values), pb(n_positron_values)
        integer :: i

        call plasma%start(t)
        call plasma%point(x, a, pa, error, method)
        call plasma%point(x, b, pb, error, method_fermi_dirac)
        call plasma%point(x, c, pb, error, method_any)
        call expect(.not. error%failed(), 'both methods')
        do i = 1, n_functions
            ! T^2 d2/dT2 of functions nearly linear in T, and x^2 d2/dx2, are compared relative to the sums that they are parts of.
            if (i < 8) call agree(name(i)//' by two methods', b(i), a(i), 1.0e-10_r8)
            if (i == 8) call expect(abs(b(i) - a(i))*t < 1.0e-11_r8*abs(a(6)), name(i)//' by two methods')
            if (i == 9) call expect(abs(b(i) - a(i))*t < 1.0e-11_r8*abs(a(7)), name(i)//' by two methods')
            call expect(abs(a(i) - c(i)) <= 1.0e-9_r8*abs(c(i)) .or. i > 7, 'the chosen method')
        end do
        do i = 1, n_positron_values
            call agree('positrons by two methods', pb(i), pa(i), 1.0e-10_r8)
        end do
    end subroutine same_by_two_methods

    !> Each function against differences of the functions whose derivative it is: in x and in T.
    subroutine differences(x, t)
        real(r8), intent(in) :: x, t
        real(r8), parameter :: h = 0.01_r8
        type(plasma_t) :: plasma(-3:3)
        type(error_t) :: error
        real(r8) :: in_x(n_functions + n_positron_values, -3:3), in_t(n_functions + n_positron_values, -3:3)
        integer :: k

        do k = -3, 3
            call plasma(k)%start(t*(1.0_r8 + k*h))
            call plasma(k)%point(x, in_t(:n_functions, k), in_t(n_functions + 1:, k), error)
        end do
        do k = -3, 3
            call plasma(0)%point(x*(1.0_r8 + k*h), in_x(:n_functions, k), in_x(n_functions + 1:, k), error)
        end do
        call expect(.not. error%failed(), 'points for differences')
        call derived(in_x, 1, 2, x)
        call derived(in_x, 2, 4, x)
        call derived(in_x, 3, 6, x)
        call derived(in_x, 6, 7, x)
        call derived(in_x, 5, 8, x)
        call derived(in_x, 8, 9, x)
        call derived(in_t, 1, 3, t)
        call derived(in_t, 3, 5, t)
        call derived(in_t, 2, 6, t)
        call derived(in_t, 4, 7, t)
        call derived(in_t, 6, 8, t)
        call derived(in_t, 7, 9, t)
        call derived(in_x, n_functions + 1, n_functions + 2, x)
        call derived(in_t, n_functions + 1, n_functions + 3, t)
        call derived(in_x, n_functions + 3, n_functions + 4, x)
    end subroutine differences

    !> That function `to` is the derivative of `from`, in the variable that is `at` at the centre.
    subroutine derived(f, from, to, at)
        real(r8), intent(in) :: f(:, -3:), at
        integer, intent(in) :: from, to
        real(r8), parameter :: h = 0.01_r8
        real(r8) :: slope

        slope = (45.0_r8*(f(from, 1) - f(from, -1)) - 9.0_r8*(f(from, 2) - f(from, -2)) + (f(from, 3) - f(from, -3)))/(60.0_r8*h*at)
        call expect(abs(slope - f(to, 0)) <= 1.0e-8_r8*(abs(f(to, 0)) + 1.0e-3_r8*abs(f(from, 0))/at), &
                    'function '//to_text(to)//' is not the derivative of '//to_text(from))
    end subroutine derived

    !> The cold part in its units: the pressure of a white dwarf's matter, 6.002e22 dyn/cm^2 f(q) (Chandrasekhar 1939, with the
    !> constants of his time; pi m^4 c^5/(3 h^3) has that value to 1e-3).
    subroutine cold()
        real(r8) :: f(3), q
        real(r8), parameter :: x = 1.0e6_r8

        f = cold_electrons(x)
        q = (x/9.7395e5_r8)**(1.0_r8/3.0_r8)
        call agree('cold pressure', x**2*f(2), 6.002e22_r8*(q*(2.0_r8*q**2 - 3.0_r8)*sqrt(1.0_r8 + q**2) + 3.0_r8*asinh(q)), &
                   2.0e-3_r8)
    end subroutine cold

    !> dP/dx and eta, pressure and energy against those printed with 8 digits; of P_xxT 4 digits are known.
    subroutine published(x, t, wanted, pressure, energy)
        real(r8), intent(in) :: x, t, wanted(n_pressure_eta), pressure, energy
        real(r8), parameter :: eight_digits = 1.0e-7_r8, four_digits = 1.0e-4_r8
        type(plasma_t) :: plasma
        type(error_t) :: error
        real(r8) :: f(n_functions), positrons(n_positron_values), values(n_pressure_eta)
        integer :: i

        call plasma%start(t)
        call plasma%point(x, f, positrons, error, pressure_eta=values)
        call expect(.not. error%failed(), 'a published point')
        f([1, 2, 4]) = f([1, 2, 4]) + cold_electrons(x)
        call agree('published pressure', x**2*f(2), pressure, eight_digits)
        call agree('published energy', f(1) - t*f(3), energy, eight_digits)
        do i = 1, n_pressure_eta
            if (wanted(i) < unknown) &
                call agree('published value '//to_text(i), values(i), wanted(i), merge(four_digits, eight_digits, i == 4))
        end do
    end subroutine published

    subroutine failure()
        type(plasma_t) :: plasma
        type(error_t) :: error
        real(r8) :: thermal(n_functions), positrons(n_positron_values)

        call plasma%start(1.0e6_r8)
        call plasma%point(-1.0_r8, thermal, positrons, error)
        call expect(error%code == exit_check, 'a negative density')
        if (error%failed()) call expect(index(error%message, '-1.0') > 0, 'a message without the density: '//error%message)
    end subroutine failure

end program test_pair_plasma
