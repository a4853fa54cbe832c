!> From density and temperature to energy, pressure, entropy and back; the same bits for every grouping of zones into rows;
!> the few columns equal those of all; and faults are named.
program test_inversion
    use, intrinsic :: ieee_arithmetic, only: ieee_positive_inf, ieee_quiet_nan, ieee_value
    use helmholtz, only: helmholtz_t
    use helmholtz_columns, only: c_abar, c_cs, c_dedt, c_dens, c_dpdt, c_dsdt, c_eint, c_entr, c_gam1, c_pres, c_temp, c_zbar, &
        given_energy, given_entropy, given_pressure, given_temperature, n_columns
    use helmholtz_testing, only: expect, failures, load, random_states
    use pw_error, only: error_t, exit_check
    use pw_kinds, only: r8
    use pw_text, only: to_text
    implicit none
    integer, parameter :: n = 20000, few_columns(6) = [c_temp, c_eint, c_pres, c_entr, c_gam1, c_cs]
    integer, parameter :: given(4) = [c_temp, c_eint, c_pres, c_entr], slope(4) = [c_temp, c_dedt, c_dpdt, c_dsdt]
    type(helmholtz_t) :: eos, plain
    type(error_t) :: error
    real(r8), allocatable :: state(:, :), other(:, :)

    allocate (state(n, n_columns), other(n, n_columns))
    call load(eos, .true.)
    call load(plain, .false.)
    call random_states(eos, 0.01_r8, state)
    call eos%rows(given_temperature, n, state, error)
    if (error%failed()) error stop 'a good row fails'
    call round_trips(eos, 1.01_r8)
    call round_trips(eos, 3.0_r8)
    call groups()
    call plain%rows(given_temperature, n, state, error)
    if (error%failed()) error stop 'a good row without Coulomb corrections fails'
    call round_trips(plain, 1.01_r8)
    call round_trips(plain, 0.0_r8)
    call wrong_zones()
    if (failures > 0) error stop 'inversions fail'

contains

    !> Temperatures come back to 1e-10, or where the problem forbids that, its condition number being kappa = |q/(T dq/dT)|, to
    !> 30 epsilon kappa; from first guesses wrong by the factor `guess` (0: none).
    subroutine round_trips(eos, guess)
        type(helmholtz_t), intent(in) :: eos
        real(r8), intent(in) :: guess
        real(r8), parameter :: tolerance = 1.0e-10_r8, rounding = 30.0_r8*epsilon(1.0_r8)
        real(r8) :: off, kappa
        integer :: mode, i, bad, forbidden

        do mode = given_energy, given_entropy
            other = 0.0_r8
            other(:, [c_dens, c_abar, c_zbar, given(mode)]) = state(:, [c_dens, c_abar, c_zbar, given(mode)])
            other(:, c_temp) = min(state(:, c_temp)*guess, eos%most_temperature)
            call eos%rows(mode, n, other, error)
            call expect(.not. error%failed(), 'mode '//to_text(mode)//' fails')
            if (error%failed()) print *, error%message
            error = error_t()
            bad = 0
            forbidden = 0
            do i = 1, n
                off = abs(other(i, c_temp)/state(i, c_temp) - 1.0_r8)
                kappa = abs(state(i, given(mode)))/(state(i, c_temp)*state(i, slope(mode)))
                if (off > tolerance) forbidden = forbidden + 1
                if (off > tolerance + rounding*kappa) bad = bad + 1
                if (abs(other(i, given(mode)) - state(i, given(mode))) > 0.0_r8) bad = bad + 1
            end do
            print '(a, i0, a, f0.2, 3(a, i0))', 'mode ', mode, ', guess ', guess, ': of ', n, ' zones ', forbidden, &
                ' are worse than 1e-10, and wrong ', bad
            ! A distant guess may lead to the other one of the states with and without Coulomb corrections.
            call expect(bad == 0 .or. (eos%coulomb .and. guess > 2.0_r8 .and. bad < n/10), &
                        to_text(bad)//' temperatures are lost in mode '//to_text(mode))
        end do
    end subroutine round_trips

    !> One zone at a time, an odd number, all: the same bits; with `few`, those of its columns.
    subroutine groups()
        integer, parameter :: m = 777, sizes(4) = [1, 5, 64, 100]
        real(r8), parameter :: rounding = 1.0e-12_r8, least(6) = [0.0_r8, 0.0_r8, 0.0_r8, 1.0e8_r8, 0.0_r8, 0.0_r8]
        real(r8) :: whole(m, n_columns), parts(m, n_columns), row(100, n_columns)
        integer :: mode, k, first, last, rest
        logical :: few

        do mode = given_temperature, given_entropy
            do k = 1, 2*size(sizes)
                few = k > size(sizes)
                whole = 0.0_r8
                whole(:, [c_dens, c_abar, c_zbar, given(mode)]) = state(:m, [c_dens, c_abar, c_zbar, given(mode)])
                if (mode /= given_temperature) whole(:, c_temp) = 1.1_r8*state(:m, c_temp)
                parts = whole
                call eos%rows(mode, m, whole, error)
                associate (length => sizes(modulo(k - 1, size(sizes)) + 1))
                    first = 1
                    do while (first <= m)
                        last = min(m, first + length - 1)
                        rest = last - first + 1
                        row(:rest, :) = parts(first:last, :)
                        call eos%rows(mode, rest, row, error, few=few)
                        parts(first:last, :) = row(:rest, :)
                        first = last + 1
                    end do
                end associate
                if (few) then
                    call expect(all(abs(whole(:, few_columns) - parts(:, few_columns)) <= rounding*(abs(whole(:, few_columns)) + &
                                    spread(least, 1, m))), 'few columns differ')
                else
                    call expect(all(abs(whole - parts) <= 0.0_r8), 'a zone depends on its row in mode '//to_text(mode))
                end if
            end do
        end do
        call expect(.not. error%failed(), 'a good group fails')
    end subroutine groups

    subroutine wrong_zones()
        real(r8) :: nan, infinity

        nan = ieee_value(nan, ieee_quiet_nan)
        infinity = ieee_value(infinity, ieee_positive_inf)
        call wrong(given_temperature, c_dens, -1.0_r8, 'density')
        call wrong(given_temperature, c_dens, 0.0_r8, 'density')
        call wrong(given_temperature, c_dens, nan, 'density')
        call wrong(given_temperature, c_dens, 1.0e17_r8, 'rho*Ye')
        call wrong(given_energy, c_dens, 1.0e-13_r8, 'rho*Ye')
        call wrong(given_temperature, c_dens, infinity, 'rho*Ye')
        call wrong(given_temperature, c_temp, 999.0_r8, 'temperature')
        call wrong(given_temperature, c_temp, 1.1e13_r8, 'temperature')
        call wrong(given_temperature, c_temp, -1.0e7_r8, 'temperature')
        call wrong(given_temperature, c_temp, nan, 'temperature')
        call wrong(given_temperature, c_abar, 0.0_r8, 'mean mass number')
        call wrong(given_temperature, c_zbar, -6.0_r8, 'mean mass number')
        call wrong(given_temperature, c_zbar, nan, 'mean mass number')
        call wrong(given_energy, c_eint, 1.0_r8, 'lowest')
        call wrong(given_energy, c_eint, -1.0e18_r8, 'lowest')
        call wrong(given_energy, c_eint, 1.0e45_r8, 'highest')
        call wrong(given_energy, c_eint, nan, 'finite')
        call wrong(given_pressure, c_pres, 1.0_r8, 'lowest')
        call wrong(given_pressure, c_pres, 1.0e50_r8, 'highest')
        call wrong(given_pressure, c_pres, infinity, 'finite')
        call wrong(given_entropy, c_entr, -1.0e20_r8, 'lowest')
        call wrong(given_entropy, c_entr, 1.0e40_r8, 'highest')
    end subroutine wrong_zones

    !> Of a row of 150, zone 133 is wrong.
    subroutine wrong(mode, column, value, why)
        integer, intent(in) :: mode, column
        real(r8), intent(in) :: value
        character(*), intent(in) :: why
        real(r8) :: row(150, n_columns)
        integer :: i

        row = 0.0_r8
        row(:, c_dens) = 1.0e6_r8
        row(:, c_temp) = [(1.0e8_r8 + 1.0e5_r8*i, i=1, 150)]
        row(:, c_abar) = 14.0_r8
        row(:, c_zbar) = 7.0_r8
        call eos%rows(given_temperature, 150, row, error)
        if (error%failed()) error stop 'a good row fails'
        row(133, column) = value
        call eos%rows(mode, 150, row, error)
        call expect(error%code == exit_check, 'a bad row is accepted: '//why)
        if (.not. error%failed()) return
        call expect(index(error%message, 'zone 133 of') > 0, 'another zone is named: '//error%message)
        call expect(index(error%message, why) > 0, 'another reason is given: '//error%message)
        error = error_t()
    end subroutine wrong

end program test_inversion
