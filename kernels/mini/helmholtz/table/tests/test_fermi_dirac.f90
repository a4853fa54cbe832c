!> The integrals against published values, massless pairs, differences, and identities; the solution for a density.
program test_fermi_dirac
    use eos_table_boltzmann, only: isotherm_t
    use eos_table_fermi_dirac, only: fermi_dirac_integrals, fermi_dirac_point, integrals_t
    use eos_table_taylor, only: taylor_t
    use eos_table_testing, only: agree, expect, finish
    use pw_kinds, only: r8
    implicit none
    real(r8), parameter :: pi = acos(-1.0_r8)
    integer :: i

    call published()
    call half_orders()
    do i = 1, 3
        call massless([1.0e-9_r8, 0.3_r8, 20.0_r8], i)
    end do
    call differences(2.0_r8, 3.0e-6_r8)
    call differences(-1.0_r8, 0.02_r8)
    call differences(30.0_r8, 0.02_r8)
    call differences(1.0_r8, 0.4_r8)
    call differences(-0.4_r8, 2.0_r8)
    call differences(45.0_r8, 3.0_r8)
    call differences(0.7_r8, 900.0_r8)
    call no_solution()
    call finish()

contains

    !> F_k(eta, beta), of x^k sqrt(1 + beta x/2)/(1 + exp(x - eta)), for k = 3/2, 5/2, where positrons do not matter, from the
    !> pressure: with Q = F_3/2 + beta/2 F_5/2 = P 3/(2 sqrt 2 beta^(5/2)), dQ/dbeta = 3/4 F_5/2.
    subroutine generalised(eta, beta, f)
        real(r8), intent(in) :: eta, beta
        real(r8), intent(out) :: f(2)
        type(integrals_t) :: sums
        real(r8) :: unit, slope

        call fermi_dirac_integrals(beta, eta, sums)
        unit = 1.5_r8/(sqrt(2.0_r8)*beta**2.5_r8)
        ! At constant eta w = beta eta grows.
        slope = unit*(sums%pressure(1) + beta*eta*sums%net(0, 0) - 2.5_r8*sums%pressure(0))
        f(2) = 4.0_r8/3.0_r8*slope/beta
        f(1) = unit*sums%pressure(0) - 0.5_r8*beta*f(2)
    end subroutine generalised

    !> Values of the program of Gong, Zejda, Daeppen and Aparicio (Comput. Phys. Commun. 136, 294, 2001), as the tests of
    !> pynucastro quote them (pynucastro/eos/tests/test_fd.py); the tolerance is the accuracy of the differences above.
    subroutine published()
        real(r8), parameter :: cold = 1.0e-16_r8
        type(integrals_t) :: sums
        real(r8) :: f(2)

        call generalised(40.0_r8, 1.0e4_r8, f)
        call agree('F_3/2(40, 1e4)', f(1), 1517805.2872690351_r8, 2.0e-9_r8)
        call generalised(10.0_r8, 1.0e-4_r8, f)
        call agree('F_5/2(10, 1e-4)', f(2), 1034.9073854351607_r8, 1.0e-10_r8)
        call generalised(100.0_r8, 1.0_r8, f)
        call agree('F_5/2(100, 1)', f(2), 17946771.869476113_r8, 1.0e-12_r8)
        ! Without relativity n = sqrt 2 beta^(3/2) F_1/2(eta), and F_-1/2 = 2 dF_1/2/d eta.
        call fermi_dirac_integrals(cold, -100.0_r8, sums)
        call agree('F_1/2(-100)', sums%net(0, 0)/(sqrt(2.0_r8)*cold**1.5_r8), 3.2968314946796124e-44_r8, 2.0e-14_r8)
        call fermi_dirac_integrals(cold, -50.0_r8, sums)
        call agree('F_-1/2(-50)', 2.0_r8*sums%net(1, 0)/(sqrt(2.0_r8)*cold**1.5_r8), 3.4186200954570750e-22_r8, 2.0e-14_r8)
    end subroutine published

    !> F_k(0) = (1 - 2^-k) Gamma(k + 1) zeta(k + 1) without relativity; zeta(3/2) and zeta(5/2) from OEIS A078434, A247469.
    subroutine half_orders()
        real(r8), parameter :: zeta(2) = [2.61237534868548834335_r8, 1.34148725725091717976_r8]
        type(integrals_t) :: sums
        real(r8), parameter :: beta = 1.0e-16_r8

        call fermi_dirac_integrals(beta, 0.0_r8, sums)
        call agree('F_1/2(0)', sums%net(0, 0)/(sqrt(2.0_r8)*beta**1.5_r8), &
                   (1.0_r8 - 2.0_r8**(-0.5_r8))*gamma(1.5_r8)*zeta(1), 1.0e-14_r8)
        call agree('F_3/2(0)', 1.5_r8*sums%pressure(0)/(sqrt(2.0_r8)*beta**2.5_r8), &
                   (1.0_r8 - 2.0_r8**(-1.5_r8))*gamma(2.5_r8)*zeta(2), 1.0e-14_r8)
    end subroutine half_orders

    !> Massless electrons and positrons: polynomials in the chemical potential and the temperature, both over which is psi.
    subroutine massless(psi, i)
        real(r8), intent(in) :: psi(:)
        integer, intent(in) :: i
        type(integrals_t) :: sums
        real(r8), parameter :: beta = 1.0e9_r8
        real(r8) :: p

        p = psi(i)
        call fermi_dirac_integrals(beta, p - 1.0_r8/beta, sums)
        ! eta is psi - 1/beta, with an absolute rounding error of 1e-16 for a psi of 1e-9.
        call agree('massless n', sums%net(0, 0), beta**3*(p**3 + pi**2*p)/3.0_r8, merge(1.0e-6_r8, 1.0e-14_r8, i == 1))
        call agree('massless dn/dw', sums%net(1, 0), beta**3*(p**2 + pi**2/3.0_r8), 1.0e-14_r8)
        call agree('massless d2n/dw2', sums%net(2, 0), beta**3*2.0_r8*p, merge(1.0e-6_r8, 1.0e-12_r8, i == 1))
        call agree('massless d3n/dw3', sums%net(3, 0), beta**3*2.0_r8, 1.0e-11_r8)
        call agree('massless dn/dT', sums%net(0, 1), beta**3*2.0_r8*pi**2*p/3.0_r8, merge(1.0e-6_r8, 1.0e-12_r8, i == 1))
        call agree('massless d2n/dT2', sums%net(0, 2), beta**3*2.0_r8*pi**2*p/3.0_r8, merge(1.0e-6_r8, 1.0e-11_r8, i == 1))
        call agree('massless P', sums%pressure(0), &
                   beta**4*(p**4/12.0_r8 + pi**2*p**2/6.0_r8 + 7.0_r8*pi**4/180.0_r8), 1.0e-14_r8)
        call agree('massless s', sums%pressure(1), beta**4*(pi**2*p**2/3.0_r8 + 7.0_r8*pi**4/45.0_r8), 1.0e-13_r8)
        call agree('massless ds/dT', sums%pressure(2), beta**4*(pi**2*p**2/3.0_r8 + 7.0_r8*pi**4/15.0_r8), 1.0e-12_r8)
        if (i == 1) call agree('massless positrons', sums%positrons(0, 0), beta**3*1.5_r8*1.2020569031595942854_r8, 1.0e-8_r8)
    end subroutine massless

    !> All derivatives against differences of sixth order of the functions themselves.
    subroutine differences(eta, beta)
        real(r8), intent(in) :: eta, beta
        real(r8), parameter :: h = 0.02_r8
        type(integrals_t) :: sums, in_w(-3:3), in_t(-3:3)
        integer :: k

        call fermi_dirac_integrals(beta, eta, sums)
        do k = -3, 3
            ! eta = w/beta decreases with temperature at constant w.
            call fermi_dirac_integrals(beta, eta + k*h, in_w(k))
            call fermi_dirac_integrals(beta*(1.0_r8 + k*h/10.0_r8), eta/(1.0_r8 + k*h/10.0_r8), in_t(k))
        end do
        associate (n => sums%net, t => 1.0_r8 + h/10.0_r8*[-3, -2, -1, 0, 1, 2, 3])
            call near('dn/dw', slope(in_w%net(0, 0), h), n(1, 0), n(1, 0))
            call near('d2n/dw2', slope(in_w%net(1, 0), h), n(2, 0), n(1, 0))
            call near('d3n/dw3', slope(in_w%net(2, 0), h), n(3, 0), n(1, 0))
            call near('d2n/dwdT', slope(in_w%net(0, 1), h), n(1, 1), n(1, 0))
            call near('d3n/dw2dT', slope(in_w%net(1, 1), h), n(2, 1), n(1, 0))
            call near('d3n/dwdT2', slope(in_w%net(0, 2), h), n(1, 2), n(1, 0))
            call near('dn/dT', slope(in_t%net(0, 0), h/10.0_r8), n(0, 1), n(0, 0) + n(1, 0))
            call near('d2n/dT2', slope(in_t%net(0, 1)/t, h/10.0_r8), n(0, 2), n(0, 0) + n(1, 0))
            call near('dn_p/dw', slope(in_w%positrons(0, 0), h), sums%positrons(1, 0), sums%positrons(0, 0))
            call near('d2n_p/dw2', slope(in_w%positrons(1, 0), h), sums%positrons(2, 0), sums%positrons(0, 0))
            call near('d2n_p/dwdT', slope(in_w%positrons(0, 1), h), sums%positrons(1, 1), sums%positrons(0, 1))
            call near('s', slope(in_t%pressure(0), h/10.0_r8), sums%pressure(1), sums%pressure(0))
            call near('ds/dT', slope(in_t%pressure(1)/t, h/10.0_r8), sums%pressure(2), sums%pressure(1))
            ! dP/dw = n, ds/dw = dn/dT.
            call near('n', slope(in_w%pressure(0), h), beta*n(0, 0), beta*n(0, 0))
            call near('Maxwell', slope(in_w%pressure(1), h), beta*n(0, 1), beta*n(0, 0))
        end associate
    end subroutine differences

    real(r8) function slope(f, h)
        real(r8), intent(in) :: f(-3:3), h

        slope = (45.0_r8*(f(1) - f(-1)) - 9.0_r8*(f(2) - f(-2)) + (f(3) - f(-3)))/(60.0_r8*h)
    end function slope

    subroutine near(label, value, wanted, unit)
        character(*), intent(in) :: label
        real(r8), intent(in) :: value, wanted, unit

        call expect(abs(value - wanted) <= 1.0e-8_r8*abs(unit), label)
    end subroutine near

    !> Failure to converge is reported.
    subroutine no_solution()
        type(isotherm_t) :: isotherm
        type(taylor_t) :: u, w, positrons
        logical :: ok

        call isotherm%start(1.0e-3_r8)
        call fermi_dirac_point(isotherm, 1.0e-6_r8, u, w, positrons, ok)
        call expect(ok, 'a density')
        ! A thousand million times kT: more points than the arrays hold.
        call fermi_dirac_point(isotherm, 1.0e20_r8, u, w, positrons, ok)
        call expect(.not. ok, 'far too degenerate')
    end subroutine no_solution

end program test_fermi_dirac
