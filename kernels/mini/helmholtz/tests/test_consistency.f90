!> Thermodynamics at random points over the whole table: Maxwell's relations; derivatives are those of the values; values and
!> first derivatives are continuous from cell to cell; an independent evaluation agrees.
program test_consistency
    use helmholtz, only: helmholtz_t
    use helmholtz_columns, only: c_abar, c_cp, c_cs, c_cv, c_deda, c_dedd, c_dedt, c_dedz, c_dens, c_dpda, c_dpdd, c_dpdt, c_dpdz, &
        c_dsda, c_dsdd, c_dsdt, c_dsdz, c_eint, c_entr, c_gam1, c_gam2, c_gam3, c_nabla, c_pres, c_temp, c_zbar, &
        given_temperature, n_columns
    use helmholtz_constants, only: gas_constant, speed_of_light
    use helmholtz_reference, only: reference_t
    use helmholtz_testing, only: expect, failures, load, random_states, range_of, table_path
    use pw_error, only: error_t
    use pw_kinds, only: r8
    use pw_text, only: to_text
    implicit none
    integer, parameter :: n = 20000
    type(helmholtz_t) :: eos, plain
    type(reference_t) :: reference
    type(error_t) :: error
    real(r8), allocatable :: state(:, :)

    allocate (state(n, n_columns))
    call load(eos, .true.)
    call reference%load(table_path(), error)
    call random_states(eos, 0.01_r8, state)
    call complete(eos, state)
    call maxwell()
    call exponents()
    call second_way()
    call edges()
    call derivatives(eos)
    call load(plain, .false.)
    call derivatives(plain)
    if (failures > 0) error stop 'the equation of state is inconsistent'

contains

    subroutine complete(eos, state)
        type(helmholtz_t), intent(in) :: eos
        real(r8), intent(inout), contiguous :: state(:, :)

        call eos%rows(given_temperature, size(state, 1), state, error)
        if (error%failed()) print *, error%message
        if (error%failed()) error stop 'a good row fails'
    end subroutine complete

    !> p = rho^2 de/drho + T dp/dT, de/dT = T ds/dT, -ds/drho = dp/dT/rho^2.
    subroutine maxwell()
        real(r8), parameter :: tolerance = 1.0e-8_r8
        real(r8) :: worst(3)

        worst(1) = maxval(abs((state(:, c_dens)**2*state(:, c_dedd) + state(:, c_temp)*state(:, c_dpdt))/state(:, c_pres) - 1.0_r8))
        worst(2) = maxval(abs(state(:, c_temp)*state(:, c_dsdt)/state(:, c_dedt) - 1.0_r8))
        worst(3) = maxval(abs(state(:, c_dsdd)*state(:, c_dens)**2/state(:, c_dpdt) + 1.0_r8))
        print '(a, 3es10.2)', 'largest residuals of the Maxwell relations', worst
        call expect(all(worst < tolerance), 'the Maxwell relations do not hold')
    end subroutine maxwell

    !> cp, the adiabatic exponents and the speed of sound from the derivatives, by other formulas than those of rows.c. The
    !> difference of cp and cv, and d ln(T)/d ln(rho) at constant entropy, come from the entropy.
    subroutine exponents()
        real(r8) :: worst(5)

        associate (rho => state(:, c_dens), t => state(:, c_temp), p => state(:, c_pres), cv => state(:, c_cv))
            worst(1) = maxval(abs(state(:, c_gam3) - 1.0_r8 + rho*state(:, c_dsdd)/(t*state(:, c_dsdt))))
            worst(2) = maxval(abs((state(:, c_dpdd) + state(:, c_dpdt)*t*(state(:, c_gam3) - 1.0_r8)/rho)*rho/p/ &
                                  state(:, c_gam1) - 1.0_r8))
            worst(3) = maxval(abs((cv + t*(state(:, c_dpdt)/rho)**2/state(:, c_dpdd))/state(:, c_cp) - 1.0_r8))
            worst(4) = maxval(abs(state(:, c_nabla)*state(:, c_gam1)/(state(:, c_gam3) - 1.0_r8) - 1.0_r8) + &
                              abs((1.0_r8 - 1.0_r8/state(:, c_gam2))/state(:, c_nabla) - 1.0_r8))
            worst(5) = maxval(abs(state(:, c_gam1)*p/(rho*(state(:, c_eint) + speed_of_light**2) + p)/ &
                                  (state(:, c_cs)/speed_of_light)**2 - 1.0_r8))
        end associate
        call expect(all(worst < 1.0e-10_r8), 'an adiabatic exponent is wrong: '//to_text(maxval(worst), 'es10.2e3'))
        call expect(all(state(:, c_cs) < speed_of_light), 'sound is faster than light')
        call expect(all(state(:, c_cv) > 0.0_r8 .and. state(:, c_dpdd) > 0.0_r8 .and. state(:, c_dpdt) > 0.0_r8), &
                    'matter is not stable')
    end subroutine exponents

    !> Against the scalar evaluation from the file.
    subroutine second_way()
        real(r8) :: wanted(3), scale(3), worst
        integer :: i

        worst = 0.0_r8
        do i = 1, n, 7
            call reference%state(state(i, c_dens), state(i, c_temp), state(i, c_abar), state(i, c_zbar), wanted(1), wanted(2), &
                                 wanted(3), scale)
            worst = max(worst, maxval(abs(state(i, [c_pres, c_eint, c_entr]) - wanted)/scale))
        end do
        call expect(worst < 2.0e-12_r8, 'the independent evaluation differs by '//to_text(worst, 'es10.2e3'))
    end subroutine second_way

    !> Central differences of p, e, s with respect to T, rho, abar and zbar. Rounding errors of the parts of the values are
    !> allowed for; steps are short, but where one crosses the nodes of the table or Gamma = 1 third derivatives jump.
    subroutine derivatives(eos)
        type(helmholtz_t), intent(in) :: eos
        integer, parameter :: by(4) = [c_temp, c_dens, c_abar, c_zbar]
        integer, parameter :: slopes(3, 4) = reshape([c_dpdt, c_dedt, c_dsdt, c_dpdd, c_dedd, c_dsdd, c_dpda, c_deda, c_dsda, &
                                                      c_dpdz, c_dedz, c_dsdz], [3, 4])
        integer, parameter :: values(3) = [c_pres, c_eint, c_entr]
        real(r8), parameter :: step = 1.0e-5_r8, rounding = 1.0e-13_r8/step, tolerance = 1.0e-6_r8
        real(r8), allocatable :: high(:, :), low(:, :)
        real(r8) :: scale(3), difference, slope, far
        integer :: i, j, k, bad

        allocate (high(n, n_columns), low(n, n_columns))
        call complete(eos, state)
        do j = 1, size(by)
            high = state
            low = state
            high(:, by(j)) = state(:, by(j))*(1.0_r8 + step)
            low(:, by(j)) = state(:, by(j))*(1.0_r8 - step)
            call complete(eos, high)
            call complete(eos, low)
            bad = 0
            do i = 1, n
                scale = abs(state(i, values)) + gas_constant/state(i, c_abar)*[state(i, c_dens)*state(i, c_temp), &
                                                                               state(i, c_temp), 10.0_r8]
                scale(1) = scale(1) + abs(state(i, c_dens)*state(i, c_dpdd))
                scale(2) = scale(2) + abs(state(i, c_dens)*state(i, c_dedd))
                do k = 1, 3
                    difference = (high(i, values(k)) - low(i, values(k)))/(2.0_r8*step)
                    slope = state(i, slopes(k, j))*state(i, by(j))
                    far = abs(difference - slope) - rounding*scale(k) - tolerance*abs(slope)
                    if (far > 0.0_r8) bad = bad + 1
                end do
            end do
            ! Of 60000: where Coulomb corrections begin or end within the step, and where pairs appear so steeply that the
            ! interpolated dp/drho of the electrons is below zero, and treated as zero.
            call expect(bad < merge(30, 10, eos%coulomb), &
                        to_text(bad)//' derivatives by column '//to_text(by(j))//' are not those of the values')
        end do
    end subroutine derivatives

    !> On both sides of the nodes of the table, in either direction.
    subroutine edges()
        integer, parameter :: checked(10) = [c_pres, c_eint, c_entr, c_dpdt, c_dpdd, c_dedt, c_dedd, c_dsdd, c_gam1, c_cs]
        real(r8), allocatable :: at(:, :), beyond(:, :)
        real(r8), parameter :: beyond_node = 1.0e-12_r8
        real(r8) :: ye, scale
        integer :: i, k, bad

        allocate (at(2000, n_columns), beyond(2000, n_columns))
        call random_states(eos, 0.01_r8, at)
        ye = at(1, c_zbar)/at(1, c_abar)
        do i = 1, size(at, 1)
            if (modulo(i, 2) == 0) then
                at(i, c_temp) = reference%temperature(2 + modulo(7*i, size(reference%temperature) - 2))
            else
                at(i, c_dens) = reference%dye(2 + modulo(7*i, size(reference%dye) - 2))/ye
            end if
        end do
        beyond = at
        where (modulo([(i, i=1, size(at, 1))], 2) == 0)
            at(:, c_temp) = at(:, c_temp)*(1.0_r8 - beyond_node)
            beyond(:, c_temp) = beyond(:, c_temp)*(1.0_r8 + beyond_node)
        else where
            at(:, c_dens) = at(:, c_dens)*(1.0_r8 - beyond_node)
            beyond(:, c_dens) = beyond(:, c_dens)*(1.0_r8 + beyond_node)
        end where
        call complete(eos, at)
        call complete(eos, beyond)
        bad = 0
        do i = 1, size(at, 1)
            do k = 1, size(checked)
                scale = abs(at(i, checked(k)))
                if (checked(k) == c_entr) scale = scale + 10.0_r8*gas_constant/at(i, c_abar)
                if (checked(k) == c_dpdd) scale = scale + at(i, c_pres)/at(i, c_dens)
                if (checked(k) == c_dedd) scale = scale + at(i, c_pres)/at(i, c_dens)**2
                if (checked(k) == c_eint) scale = scale + at(i, c_pres)/at(i, c_dens)
                if (abs(at(i, checked(k)) - beyond(i, checked(k))) > 1.0e-9_r8*scale) bad = bad + 1
            end do
        end do
        call expect(bad == 0, to_text(bad)//' quantities jump at the nodes of the table')
        call expect(size(range_of(eos)) == 4, 'the table has no range')
    end subroutine edges

end program test_consistency
