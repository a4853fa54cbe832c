!> Electrons and positrons of any degeneracy: the Fermi-Dirac integrals and their derivatives by the trapezoidal rule.
!>
!> With a momentum p = sinh u [m c], E_kin = cosh u - 1 [m c^2], beta = kT/(m c^2) and f(a) = 1/(1 + e^a), net density and pressure
!>     n = int (f(a) - f(a_p)) sinh^2 u cosh u du,   P = int (f(a) + f(a_p)) sinh^4 u/3 du,
!>     a = E_kin/beta - eta,   a_p = (E_kin + 2)/beta + eta
!> are even and, except for the poles of f, entire in u, and decay doubly exponentially, so that a step h has an error
!> exp(-2 pi d/h), d being the distance of the nearest pole from the real axis (Trefethen and Weideman, SIAM Review 56, 385,
!> 2014): no panels, no tails. Derivatives in the chemical potential w = eta beta and in beta are those of f.
module eos_table_fermi_dirac
    use eos_table_boltzmann, only: isotherm_t
    use eos_table_cold, only: cold_free_energy, fermi_momentum, kinetic_energy
    use eos_table_taylor, only: constant, logarithm, one_plus_tau, one_plus_xi, operator(*), operator(+), operator(-), &
        operator(/), taylor_t
    use pw_kinds, only: r8
    implicit none
    private

    !> Below this kT/(m c^2) positrons are negligible where this module is used: less than exp(-60) of the electrons.
    real(r8), parameter, public :: pairs_from = 0.03_r8
    !> Sums of electrons and positrons are computed together if the chemical potential with rest mass is less than this many
    !> kT.
    real(r8), parameter :: nearly_neutral = 1.0_r8
    integer, parameter :: most_nodes = 4000

    !> beta^(i+j) times the derivative, i times with respect to w and j times to beta, of the net density, the positrons'
    !> and the pressure.
    type, public :: integrals_t
        real(r8) :: net(0:3, 0:2) = 0.0_r8         !< [n_0], for i + j at most 3
        real(r8) :: positrons(0:2, 0:1) = 0.0_r8   !< [n_0], for i + j at most 2
        real(r8) :: pressure(0:2) = 0.0_r8         !< [n_0 m c^2], i = 0
    end type integrals_t

    !> The points of the rule at one temperature.
    type :: rule_t
        integer :: n = 0
        real(r8) :: at(most_nodes)         ! energy over kT: with rest mass if there are pairs
        real(r8) :: density(most_nodes)    ! weights
        real(r8) :: pressure(most_nodes)
    end type rule_t

    public :: fermi_dirac_point, fermi_dirac_integrals

contains

    !> At a net density n [n_0] and a temperature: the free energy per net electron minus that at zero temperature, u [m
    !> c^2], the chemical potential w [m c^2] without rest mass, and the logarithm of the positrons' density [n_0]. `ok` is
    !> false if no solution was found. The derivatives of w of more than third order in total are not complete.
    pure subroutine fermi_dirac_point(isotherm, n, u, w, positrons, ok)
        type(isotherm_t), intent(in) :: isotherm
        real(r8), intent(in) :: n
        type(taylor_t), intent(out) :: u, w, positrons
        logical, intent(out) :: ok
        type(integrals_t) :: sums
        type(rule_t) :: rule
        real(r8) :: potential
        logical :: pairs

        pairs = isotherm%beta > pairs_from
        call start(rule, isotherm%beta, kinetic_energy(fermi_momentum(n))/isotherm%beta, pairs)
        ok = rule%n > 0
        if (ok) call solve(rule, isotherm, n, pairs, potential, ok)
        if (.not. ok) return
        call integrate(rule, potential, pairs, sums)
        call transform(sums, isotherm, n, merge(potential - 1.0_r8/isotherm%beta, potential, pairs), u, w, positrons)
    end subroutine fermi_dirac_point

    !> The integrals at a given eta, which is above -1/beta.
    pure subroutine fermi_dirac_integrals(beta, eta, sums)
        real(r8), intent(in) :: beta, eta
        type(integrals_t), intent(out) :: sums
        type(rule_t) :: rule
        logical :: pairs

        pairs = beta > pairs_from
        call start(rule, beta, eta, pairs)
        call integrate(rule, merge(eta + 1.0_r8/beta, eta, pairs), pairs, sums)
    end subroutine fermi_dirac_integrals

    !> Points for all eta up to `eta_most`; none if it needs too many.
    pure subroutine start(rule, beta, eta_most, pairs)
        type(rule_t), intent(inout) :: rule
        real(r8), intent(in) :: beta, eta_most
        logical, intent(in) :: pairs
        real(r8), parameter :: pi = 3.14159265358979323846264338327950288_r8
        real(r8), parameter :: digits = 46.0_r8, tail = 65.0_r8   ! exp(-46) = 1e-20
        complex(r8) :: half_cosine
        real(r8) :: distance, last, points, step, u, energy, p
        integer :: i

        ! The nearest pole is at cosh u - 1 = beta (eta +- i pi); sinh(u/2)^2 is half of it.
        half_cosine = sqrt(0.5_r8*beta*cmplx(eta_most, pi, r8))
        distance = abs(aimag(2.0_r8*log(half_cosine + sqrt(1.0_r8 + half_cosine**2))))
        if (abs(half_cosine) < 1.0e-4_r8) distance = abs(aimag(2.0_r8*half_cosine))
        last = 2.0_r8*asinh(sqrt(0.5_r8*beta*(max(eta_most, 0.0_r8) + tail)))
        points = max(40.0_r8, last*digits/(2.0_r8*pi*distance))
        if (.not. points < most_nodes) return
        rule%n = ceiling(points)
        step = last/rule%n
        do i = 1, rule%n
            u = i*step
            energy = 2.0_r8*sinh(0.5_r8*u)**2
            p = sinh(u)
            rule%at(i) = energy/beta
            if (pairs) rule%at(i) = (energy + 1.0_r8)/beta
            rule%density(i) = step*p**2*(1.0_r8 + energy)
            rule%pressure(i) = step*p**4/3.0_r8
        end do
    end subroutine start

    !> Find the chemical potential over kT, with rest mass if there are pairs. By Newton's method: without pairs for ln n as
    !> a function of eta, from below, where it is concave; with pairs for ln n as a function of ln psi, kept within bounds.
    pure subroutine solve(rule, isotherm, n, pairs, potential, ok)
        type(rule_t), intent(in) :: rule
        type(isotherm_t), intent(in) :: isotherm
        real(r8), intent(in) :: n
        logical, intent(in) :: pairs
        real(r8), intent(out) :: potential
        logical, intent(out) :: ok
        real(r8) :: least, most, density, slope, next, change
        integer :: i

        associate (beta => isotherm%beta)
            most = kinetic_energy(fermi_momentum(n))/beta
            if (pairs) then
                least = asinh(0.5_r8*n/isotherm%one%c(0, 0)*exp(1.0_r8/beta))
                most = most + 1.0_r8/beta
            else
                least = log(n/isotherm%one%c(0, 0))
            end if
        end associate
        least = least - 1.0e-10_r8*abs(least)
        most = most + 1.0e-10_r8*abs(most)
        potential = least
        ok = .false.
        do i = 1, 100
            call count(rule, potential, pairs, density, slope)
            if (pairs) then
                next = potential*exp(log(n/density)*density/(slope*potential))
            else
                next = potential + log(n/density)*density/slope
            end if
            if (density < n) least = potential
            if (density > n) most = potential
            if (.not. (next >= least .and. next <= most)) next = 0.5_r8*(least + most)
            change = abs(next - potential)
            potential = next
            ! The error after the last step is its square.
            ok = change <= 1.0e-9_r8*merge(potential, 1.0_r8, pairs)
            if (ok) exit
        end do
    end subroutine solve

    !> The net density and its derivative in the chemical potential over kT.
    pure subroutine count(rule, potential, pairs, density, slope)
        type(rule_t), intent(in) :: rule
        real(r8), intent(in) :: potential
        logical, intent(in) :: pairs
        real(r8), intent(out) :: density, slope
        real(r8) :: y, y_p, difference, sine
        integer :: i

        density = 0.0_r8
        slope = 0.0_r8
        sine = 0.0_r8
        if (pairs) sine = 2.0_r8*sinh(potential)
        do i = 1, rule%n
            y = exp(-abs(rule%at(i) - potential))
            if (pairs) then
                y_p = exp(-(rule%at(i) + potential))
                difference = sine*exp(-rule%at(i))/((1.0_r8 + exp(potential - rule%at(i)))*(1.0_r8 + y_p))
                density = density + rule%density(i)*difference
                slope = slope + rule%density(i)*(y/(1.0_r8 + y)**2 + y_p/(1.0_r8 + y_p)**2)
            else
                density = density + rule%density(i)*merge(y, 1.0_r8, rule%at(i) >= potential)/(1.0_r8 + y)
                slope = slope + rule%density(i)*y/(1.0_r8 + y)**2
            end if
        end do
    end subroutine count

    !> f(a) and its first three derivatives.
    pure function occupation(a) result(f)
        real(r8), intent(in) :: a
        real(r8) :: f(0:3), y, k

        y = exp(-abs(a))
        f(0) = merge(y, 1.0_r8, a >= 0.0_r8)/(1.0_r8 + y)
        k = y/(1.0_r8 + y)**2
        f(1) = -k
        f(2) = sign(k*(1.0_r8 - y)/(1.0_r8 + y), a)
        f(3) = k*(6.0_r8*k - 1.0_r8)
    end function occupation

    !> beta^(i+j) times derivatives i times in w and j times in beta of f((E - w)/beta), from those in a; i even or odd.
    pure subroutine even_derivatives(f, af, aaf, d)
        real(r8), intent(in) :: f(0:3), af(0:3), aaf(0:3)   ! f^(k), a f^(k), a^2 f^(k)
        real(r8), intent(inout) :: d(0:3, 0:2)

        d(0, 0) = f(0)
        d(2, 0) = f(2)
        d(0, 1) = -af(1)
        d(2, 1) = -2.0_r8*f(2) - af(3)
        d(0, 2) = 2.0_r8*af(1) + aaf(2)
    end subroutine even_derivatives

    pure subroutine odd_derivatives(a, f, d)
        real(r8), intent(in) :: a, f(0:3)
        real(r8), intent(inout) :: d(0:3, 0:2)

        d(1, 0) = -f(1)
        d(3, 0) = -f(3)
        d(1, 1) = f(1) + a*f(2)
        d(1, 2) = -(2.0_r8*f(1) + 4.0_r8*a*f(2) + a**2*f(3))
    end subroutine odd_derivatives

    !> All integrals, at a chemical potential over kT, with rest mass if there are pairs.
    pure subroutine integrate(rule, potential, pairs, sums)
        type(rule_t), intent(in) :: rule
        real(r8), intent(in) :: potential
        logical, intent(in) :: pairs
        type(integrals_t), intent(out) :: sums
        real(r8) :: f(0:3), fp(0:3), df(0:3), adf(0:3), aadf(0:3), a, ap, d(0:3, 0:2), dp(0:3, 0:2), difference, sum
        integer :: i

        d = 0.0_r8
        dp = 0.0_r8
        do i = 1, rule%n
            a = rule%at(i) - potential
            f = occupation(a)
            call even_derivatives(f, a*f, a**2*f, d)
            call odd_derivatives(a, f, d)
            sums%pressure = sums%pressure + rule%pressure(i)*d(0, :)
            if (.not. pairs) then
                sums%net = sums%net + rule%density(i)*d
                cycle
            end if

            ! Positrons: w changes its sign, and so does an odd derivative in it.
            ap = rule%at(i) + potential
            fp = occupation(ap)
            call even_derivatives(fp, ap*fp, ap**2*fp, dp)
            call odd_derivatives(ap, fp, dp)
            sums%pressure = sums%pressure + rule%pressure(i)*dp(0, :)
            sums%positrons(0, :) = sums%positrons(0, :) + rule%density(i)*dp(0, :1)
            sums%positrons(1, :) = sums%positrons(1, :) - rule%density(i)*dp(1, :1)
            sums%positrons(2, :) = sums%positrons(2, :) + rule%density(i)*dp(2, :1)
            d(1::2, :) = d(1::2, :) + dp(1::2, :)
            if (potential > nearly_neutral) then
                d(0::2, :) = d(0::2, :) - dp(0::2, :)
            else
                ! As polynomials of f(a) and f(a_p), divided by the difference, which is known directly.
                sum = f(0) + fp(0)
                difference = 2.0_r8*sinh(potential)*exp(-rule%at(i))/((1.0_r8 + exp(-a))*(1.0_r8 + exp(-ap)))
                df(0) = difference
                df(1) = -difference*(1.0_r8 - sum)
                df(2) = difference*(1.0_r8 - 3.0_r8*sum + 2.0_r8*(sum**2 - f(0)*fp(0)))
                df(3) = -df(1)*(-6.0_r8*(f(1) + fp(1)) - 1.0_r8)
                adf = a*df - 2.0_r8*potential*fp
                aadf = a**2*df - 4.0_r8*rule%at(i)*potential*fp
                call even_derivatives(df, adf, aadf, d)
            end if
            sums%net = sums%net + rule%density(i)*d
        end do
    end subroutine integrate

    !> Convert derivatives at constant chemical potential to those at constant density.
    pure subroutine transform(sums, isotherm, n, eta, u, w, positrons)
        type(integrals_t), intent(in) :: sums
        type(isotherm_t), intent(in) :: isotherm
        real(r8), intent(in) :: n, eta
        type(taylor_t), intent(out) :: u, w, positrons
        type(taylor_t) :: shift, remainder, energy
        real(r8) :: change(0:2)
        integer :: i

        ! w = beta (eta + shift), where shift, 0 at the point, keeps the density at n (1 + xi); to the third order in total.
        do i = 1, 4
            remainder = one_plus_xi(n) - density_at(shift)
            remainder%c(0, 0) = 0.0_r8
            shift = shift + (1.0_r8/sums%net(1, 0))*remainder
        end do

        ! dF/dn = w; dF/dT = -dP/dT at constant w; the second one also contains the density's change at constant w.
        change = n*isotherm%beta*shift%c(0, :)
        change(0) = n*isotherm%beta*eta
        energy%c(0, 0) = change(0) - sums%pressure(0)
        energy%c(0, 1) = -sums%pressure(1)
        energy%c(0, 2) = -0.5_r8*(sums%pressure(2) + isotherm%beta*sums%net(0, 1)*shift%c(0, 1))
        energy%c(1, :) = change
        energy%c(2, :) = 0.5_r8*n*isotherm%beta*shift%c(1, :)
        u = energy/one_plus_xi(n) - cold_free_energy(n)

        ! The factor of eta + shift is the beta of the point.
        w = isotherm%beta*(shift + eta)
        if (isotherm%beta > pairs_from) then
            associate (p => sums%positrons)
                remainder = constant(p(0, 0)) + p(1, 0)*shift + (0.5_r8*p(2, 0))*(shift*shift)
                remainder%c(:, 1) = remainder%c(:, 1) + [p(0, 1), p(1, 1)*shift%c(1, 0), 0.0_r8]
            end associate
            positrons = logarithm(remainder)
        else
            positrons = isotherm%sparse_positrons(w)
        end if

    contains

        !> The density at w = beta (eta + shift) and beta (1 + tau), minus that at the point.
        pure type(taylor_t) function density_at(shift) result(density)
            type(taylor_t), intent(in) :: shift
            type(taylor_t) :: tau, square

            tau%c(0, 1) = 1.0_r8
            square = shift*shift
            associate (d => sums%net)
                density = constant(n) + d(1, 0)*shift + d(0, 1)*tau + (0.5_r8*d(2, 0))*square + d(1, 1)*(shift*tau) + &
                          (0.5_r8*d(0, 2))*(tau*tau) + (d(3, 0)/6.0_r8)*(square*shift) + (0.5_r8*d(2, 1))*(square*tau) + &
                          (0.5_r8*d(1, 2))*(shift*(tau*tau))
            end associate
        end function density_at

    end subroutine transform

end module eos_table_fermi_dirac
