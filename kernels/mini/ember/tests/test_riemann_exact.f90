!> The Riemann problem against the star states of Toro's five tests, and its averages.
program test_riemann_exact
    use pw_error, only: error_t, exit_check, exit_usage, stop_on
    use pw_kinds, only: r8
    use riemann_exact, only: gas_t, riemann_t
    implicit none
    type(riemann_t) :: problem
    type(error_t) :: error
    integer :: failures = 0
    real(r8), parameter :: g = 1.4_r8

    ! Toro 2009, tables 4.1 and 4.3: pressure, velocity, densities left and right of the contact.
    call expect(gas_t(1.0_r8, 0.0_r8, 1.0_r8), gas_t(0.125_r8, 0.0_r8, 0.1_r8), &
                [0.30313_r8, 0.92745_r8, 0.42632_r8, 0.26557_r8])
    call expect(gas_t(1.0_r8, -2.0_r8, 0.4_r8), gas_t(1.0_r8, 2.0_r8, 0.4_r8), [0.00189_r8, 0.0_r8, 0.02185_r8, 0.02185_r8])
    call expect(gas_t(1.0_r8, 0.0_r8, 1000.0_r8), gas_t(1.0_r8, 0.0_r8, 0.01_r8), &
                [460.894_r8, 19.5975_r8, 0.57506_r8, 5.99924_r8])
    call expect(gas_t(1.0_r8, 0.0_r8, 0.01_r8), gas_t(1.0_r8, 0.0_r8, 100.0_r8), &
                [46.0950_r8, -6.19633_r8, 5.99242_r8, 0.57511_r8])
    call expect(gas_t(5.99924_r8, 19.5975_r8, 460.894_r8), gas_t(5.99242_r8, -6.19633_r8, 46.0950_r8), &
                [1691.64_r8, 8.68975_r8, 14.2823_r8, 31.0426_r8])

    call vacuum()
    call averages()
    call refused(1.0_r8, gas_t(), gas_t())
    call refused(g, gas_t(dens=0.0_r8), gas_t())
    call refused(g, gas_t(), gas_t(pres=-1.0_r8))
    if (failures > 0) error stop 'test_riemann_exact: failures'

contains

    subroutine expect(left, right, star)
        type(gas_t), intent(in) :: left, right
        real(r8), intent(in) :: star(4)
        real(r8) :: rho_l, rho_r, u, p

        call problem%start(g, left, right, error)
        call stop_on('test_riemann_exact', error)
        ! Six digits are published; for the pressure of test 2, three.
        call agree('pressure', problem%pres, star(1), max(1.0e-5_r8*star(1), 6.0e-6_r8))
        call agree('velocity', problem%velocity, star(2), max(1.0e-5_r8*abs(star(2)), 1.0e-12_r8))
        call problem%sample(problem%velocity, rho_l, u, p)
        call problem%sample(problem%velocity + 1.0e-9_r8, rho_r, u, p)
        call agree('density left', rho_l, star(3), max(1.0e-5_r8*star(3), 6.0e-6_r8))
        call agree('density right', rho_r, star(4), max(1.0e-5_r8*star(4), 6.0e-6_r8))
    end subroutine expect

    subroutine vacuum()
        type(error_t) :: refusal
        real(r8) :: c

        c = sqrt(g)
        call problem%start(g, gas_t(1.0_r8, -5.01_r8*c, 1.0_r8), gas_t(1.0_r8, 5.01_r8*c, 1.0_r8), refusal)
        call agree('a vacuum is reported', real(refusal%code, r8), real(exit_check, r8), 0.0_r8)
        call problem%start(g, gas_t(1.0_r8, -4.9_r8*c, 1.0_r8), gas_t(1.0_r8, 4.9_r8*c, 1.0_r8), error)
        call agree('almost a vacuum', problem%pres, 0.02_r8**7, 1.0e-12_r8*0.02_r8**7)
    end subroutine vacuum

    !> Averages over a domain that no wave has left: the initial content and the inflow.
    subroutine averages()
        real(r8) :: dens, momentum, pres, part(3), sum(3)
        integer :: k

        call problem%start(g, gas_t(1.0_r8, 0.0_r8, 1.0_r8), gas_t(0.125_r8, 0.0_r8, 0.1_r8), error)
        sum = 0.0_r8
        do k = 1, 100
            call problem%average(-2.5_r8 + 0.05_r8*(k - 1), -2.5_r8 + 0.05_r8*k, part(1), part(2), part(3))
            sum = sum + 0.01_r8*part
        end do
        call agree('mass', sum(1), 0.5_r8*1.125_r8, 1.0e-8_r8)
        call agree('momentum', sum(2), 0.9_r8/5.0_r8, 1.0e-8_r8)
        call problem%average(-3.0_r8, -2.0_r8, dens, momentum, pres)
        call agree('outside', abs(dens - 1.0_r8) + abs(momentum) + abs(pres - 1.0_r8), 0.0_r8, 1.0e-14_r8)
    end subroutine averages

    subroutine refused(gamma, left, right)
        real(r8), intent(in) :: gamma
        type(gas_t), intent(in) :: left, right
        type(error_t) :: refusal

        call problem%start(gamma, left, right, refusal)
        call agree('a refusal', real(refusal%code, r8), real(exit_usage, r8), 0.0_r8)
    end subroutine refused

    subroutine agree(label, got, wanted, tolerance)
        character(*), intent(in) :: label
        real(r8), intent(in) :: got, wanted, tolerance

        if (abs(got - wanted) <= tolerance) return
        failures = failures + 1
        print *, label, ': ', got, ' is not ', wanted
    end subroutine agree

end program test_riemann_exact
