!> The point explosion in a uniform cold gas: the exact similarity solution.
!>
!> An energy E is released instantaneously in a plane (symmetry j = 1), on a line (2) or in a point (3) of a gas of density
!> rho_0 without pressure that obeys the gamma law. The shock is at R(t) = (E t^2/(alpha rho_0))^(1/(j+2)); behind it
!> everything is a function of r/R. L. I. Sedov, Similarity and dimensional methods in mechanics (1959), found the solution
!> in closed form, with V = v t/r as parameter; J. R. Kamm and F. X. Timmes, On efficient generation of numerically robust
!> Sedov solutions, LA-UR-07-2849 (2007), describe it, and the names x_1 ... x_4, alpha_0 ... alpha_5 are theirs, for a
!> uniform density.
!>
!> Two things differ here. The parameter is s = ln(x_2), from 0 at the shock to minus infinity in the centre: V
!> itself tends to its value in the centre as r^(1/|alpha_2|), about r^10, and loses all digits long before. And
!> alpha_4, alpha_5, which have a pole at gamma = 2, are combined: x_3^alpha_4 x_4^alpha_5 has none.
module sedov_exact
    use pw_error, only: error_t, exit_check, exit_usage
    use pw_kinds, only: r8
    use pw_text, only: to_text
    implicit none
    private

    integer, parameter :: points = 16           ! of the Gauss rule in an interval of the energy integral
    real(r8), parameter :: pi = acos(-1.0_r8)

    !> A solution: `start` makes it. Units are those of energy, density and time, consistently.
    type, public :: sedov_t
        integer :: symmetry = 3                 !< 1 planar, 2 cylindrical, 3 spherical
        real(r8) :: gamma = 1.4_r8
        real(r8) :: energy = 1.0_r8             !< of the whole explosion; planar: on both sides, per area; cylindrical: per length
        real(r8) :: density = 1.0_r8            !< ahead of the shock
        real(r8) :: alpha = 0.0_r8              !< E t^2/(rho_0 R^(j+2))
        real(r8), private :: a, b, c, d, e      ! of x_1 ... x_4
        real(r8), private :: alpha_0, alpha_1, alpha_2, alpha_3, alpha_45, q
    contains
        procedure :: start
        procedure :: shock_radius
        procedure :: shock_speed
        procedure :: profile
        procedure, private :: at, fractions, parameter_of
    end type sedov_t

contains

    !> Set up the solution for `symmetry` 1, 2 or 3, the adiabatic index `gamma` (above 1; below 7 with spherical symmetry,
    !> where a vacuum would form in the centre), the `energy` of the whole explosion and the `density` ahead of the shock.
    !> The energy integral has a relative accuracy of 1e-12. Errors: exit_usage if a number is invalid; exit_check if the
    !> integral does not converge, as happens close to gamma = 7.
    subroutine start(self, symmetry, gamma, energy, density, error)
        class(sedov_t), intent(out) :: self
        integer, intent(in) :: symmetry
        real(r8), intent(in) :: gamma, energy, density
        type(error_t), intent(inout) :: error
        real(r8) :: integral

        if (symmetry < 1 .or. symmetry > 3) then
            call error%raise(exit_usage, 'a point explosion has the symmetry 1, 2 or 3, not '//to_text(symmetry), 'sedov_exact', &
                             'choose 1, 2 or 3')
        else if (.not. (gamma > 1.0_r8 .and. (symmetry < 3 .or. gamma < 7.0_r8))) then
            call error%raise(exit_usage, 'no standard point explosion for gamma '//to_text(gamma, 'g0.6'), 'sedov_exact', &
                             'choose gamma above 1 and, with spherical symmetry, below 7')
        else if (.not. (energy > 0.0_r8 .and. density > 0.0_r8)) then
            call error%raise(exit_usage, 'a point explosion needs energy and density above 0', 'sedov_exact', 'choose other values')
        end if
        if (error%failed()) return
        self%symmetry = symmetry
        self%gamma = gamma
        self%energy = energy
        self%density = density
        call set_exponents(self)
        call integrate(self, integral, error)
        self%alpha = surface(symmetry)*8.0_r8/((gamma**2 - 1.0_r8)*(symmetry + 2)**2)*integral
    end subroutine start

    !> Radius of the shock at `time`; 0 at time 0 and before.
    pure elemental real(r8) function shock_radius(self, time)
        class(sedov_t), intent(in) :: self
        real(r8), intent(in) :: time

        shock_radius = (self%energy*max(time, 0.0_r8)**2/(self%alpha*self%density))**(1.0_r8/(self%symmetry + 2))
    end function shock_radius

    !> Speed of the shock at `time` > 0.
    pure elemental real(r8) function shock_speed(self, time)
        class(sedov_t), intent(in) :: self
        real(r8), intent(in) :: time

        shock_speed = 2.0_r8*self%shock_radius(time)/((self%symmetry + 2)*time)
    end function shock_speed

    !> Density, velocity (away from the centre) and pressure at distance `radius` >= 0 from the centre at `time`. The gas at the
    !> shock itself counts as shocked. Density vanishes in the centre and is rounded to 0 near it; the pressure does not.
    pure elemental subroutine profile(self, radius, time, dens, velocity, pres)
        class(sedov_t), intent(in) :: self
        real(r8), intent(in) :: radius, time
        real(r8), intent(out) :: dens, velocity, pres
        real(r8) :: shock, speed, lambda, f, g, h

        dens = self%density
        velocity = 0.0_r8
        pres = 0.0_r8
        shock = self%shock_radius(time)
        if (radius > shock .or. .not. shock > 0.0_r8) return
        lambda = radius/shock
        speed = self%shock_speed(time)
        call self%fractions(self%parameter_of(lambda), f, g, h)
        associate (gamma => self%gamma)
            dens = (gamma + 1.0_r8)/(gamma - 1.0_r8)*self%density*g
            velocity = 2.0_r8/(gamma + 1.0_r8)*speed*f*lambda
            pres = 2.0_r8/(gamma + 1.0_r8)*self%density*speed**2*h
        end associate
    end subroutine profile

    !> Constants of the closed form. With delta = 2 - gamma, alpha_5 is -2/delta, and
    !> x_3^alpha_4 x_4^alpha_5 = x_3^(alpha_4 + alpha_5) (x_4/x_3)^alpha_5. The sum alpha_4 + alpha_5 has no pole when it is
    !> simplified nor has the logarithm of the second factor, since x_3 - x_4 = delta q (2 x_1 - 2), where
    !> q = j (gamma+1)/((gamma-1) (j (3-gamma) + 2 gamma - 2)).
    pure subroutine set_exponents(self)
        type(sedov_t), intent(inout) :: self
        real(r8) :: j, g, k, m, n

        j = real(self%symmetry, r8)
        g = self%gamma - 1.0_r8
        k = 2.0_r8 + j*g
        m = 2.0_r8*g + j
        n = j*(2.0_r8 - g) + 2.0_r8*g
        self%a = (j + 2.0_r8)*(g + 2.0_r8)/4.0_r8
        self%b = (g + 2.0_r8)/g
        self%c = (j + 2.0_r8)*self%gamma/2.0_r8
        self%d = (j + 2.0_r8)*(g + 2.0_r8)/n
        self%e = k/2.0_r8
        self%alpha_0 = 2.0_r8/(j + 2.0_r8)
        self%alpha_2 = -g/m
        self%alpha_1 = (j + 2.0_r8)*self%gamma/k*(2.0_r8*j*(1.0_r8 - g)/(self%gamma*(j + 2.0_r8)**2) - self%alpha_2)
        self%alpha_3 = j/m
        self%alpha_45 = 2.0_r8*j/k - ((j**2 + 4.0_r8)*g + 4.0_r8*j)/(k*m)
        self%q = j*(g + 2.0_r8)/(n*g)
    end subroutine set_exponents

    !> ln(r/R) and its derivative at the parameter s.
    pure subroutine at(self, s, log_lambda, slope)
        class(sedov_t), intent(in) :: self
        real(r8), intent(in) :: s
        real(r8), intent(out) :: log_lambda, slope
        real(r8) :: v, dv, x_1, x_3

        dv = exp(s)/(self%b*self%c)
        v = 1.0_r8/self%c + dv
        x_1 = self%a*v
        x_3 = self%d*(1.0_r8 - self%e*v)
        log_lambda = -self%alpha_0*log(x_1) - self%alpha_2*s - self%alpha_1*log(x_3)
        slope = -self%alpha_0*dv/v - self%alpha_2 + self%alpha_1*self%d*self%e*dv/x_3
    end subroutine at

    !> At the parameter s: v/r, density and pressure as shares `f`, `g`, `h` of those at the shock.
    pure subroutine fractions(self, s, f, g, h)
        class(sedov_t), intent(in) :: self
        real(r8), intent(in) :: s
        real(r8), intent(out) :: f, g, h
        real(r8) :: v, x_1, x_3, x_4, log_34, delta, offset, j

        j = real(self%symmetry, r8)
        delta = 2.0_r8 - self%gamma
        v = (1.0_r8 + exp(s)/self%b)/self%c
        x_1 = self%a*v
        x_3 = self%d*(1.0_r8 - self%e*v)
        x_4 = self%b*(1.0_r8 - self%c*v/self%gamma)
        offset = self%q*(2.0_r8*x_1 - 2.0_r8)/x_3
        log_34 = self%alpha_45*log(x_3) + 2.0_r8*offset*relative_log(-delta*offset)
        f = x_1
        g = exp(self%alpha_3*s + log_34)
        h = exp(self%alpha_0*j*log(x_1) - 2.0_r8*self%alpha_1*log(x_3) + log_34)*x_4
    end subroutine fractions

    !> ln(1 + x)/x, accurate also near 0: rounding of 1 + x affects logarithm and divisor in the same way (W. Kahan).
    pure real(r8) function relative_log(x)
        real(r8), intent(in) :: x
        real(r8) :: sum

        sum = 1.0_r8 + x
        relative_log = 1.0_r8
        if (abs(sum - 1.0_r8) > 0.0_r8) relative_log = log(sum)/(sum - 1.0_r8)
    end function relative_log

    !> The parameter s at `lambda` = r/R in [0, 1]: ln(lambda) grows with s, and far from the shock linearly, so that Newton's
    !> steps converge; they are kept between bounds nevertheless.
    pure real(r8) function parameter_of(self, lambda) result(s)
        class(sedov_t), intent(in) :: self
        real(r8), intent(in) :: lambda
        real(r8) :: target, low, high, log_lambda, slope, step
        integer :: i

        s = 0.0_r8
        if (lambda >= 1.0_r8) return
        target = log(max(lambda, tiny(1.0_r8)))
        ! The contribution of x_1 and x_3 to ln(lambda) is far less than 100.
        low = (target - 100.0_r8)/abs(self%alpha_2)
        high = 0.0_r8
        s = target/abs(self%alpha_2)
        do i = 1, 200
            call self%at(s, log_lambda, slope)
            if (log_lambda > target) then
                high = s
            else
                low = s
            end if
            step = (target - log_lambda)/slope
            if (s + step <= low .or. s + step >= high) step = 0.5_r8*(low + high) - s
            s = s + step
            if (abs(step) <= 8.0_r8*epsilon(s)*max(1.0_r8, abs(s))) exit
        end do
    end function parameter_of

    !> The integral of (g f^2 + h) lambda^(j-1) over lambda from 0 to 1, evaluated over s, where the integrand is smooth,
    !> and decays as lambda^j. Gauss rules on repeatedly doubled numbers of intervals until two results agree.
    subroutine integrate(self, integral, error)
        type(sedov_t), intent(in) :: self
        real(r8), intent(out) :: integral
        type(error_t), intent(inout) :: error
        real(r8), parameter :: tolerance = 1.0e-13_r8
        real(r8) :: node(points), weight(points), decay, before
        integer :: halvings

        call gauss_rule(node, weight)
        decay = -self%alpha_2*self%symmetry
        before = 0.0_r8
        do halvings = 0, 10
            ! The integrand varies with exp(s) near the shock, only with exp(decay*s) further inside; below 1e-18 it is
            ! negligible.
            integral = over(-20.0_r8, 0.0_r8, 40*2**halvings) + over(-20.0_r8 - 42.0_r8/decay, -20.0_r8, 40*2**halvings)
            if (abs(integral - before) <= tolerance*integral) return
            before = integral
        end do
        call error%raise(exit_check, 'the energy integral of the point explosion does not converge', 'sedov_exact', &
                         'choose gamma farther from 1 and from 7')

    contains

        real(r8) function over(from, to, intervals) result(sum)
            real(r8), intent(in) :: from, to
            integer, intent(in) :: intervals
            real(r8) :: half, s, log_lambda, slope, f, g, h
            integer :: i, k

            half = 0.5_r8*(to - from)/intervals
            sum = 0.0_r8
            do i = 1, intervals
                do k = 1, points
                    s = from + half*(2*i - 1 + node(k))
                    call self%at(s, log_lambda, slope)
                    call self%fractions(s, f, g, h)
                    sum = sum + weight(k)*half*(g*(f*exp(log_lambda))**2 + h)*slope*exp(self%symmetry*log_lambda)
                end do
            end do
        end function over

    end subroutine integrate

    !> Gauss-Legendre nodes and weights in [-1, 1]: Newton's iteration on the Legendre polynomial.
    pure subroutine gauss_rule(node, weight)
        real(r8), intent(out) :: node(points), weight(points)
        real(r8) :: x, p, before, other, slope
        integer :: i, k, iteration

        do i = 1, points
            x = cos(pi*(i - 0.25_r8)/(points + 0.5_r8))
            do iteration = 1, 20
                before = 1.0_r8
                p = x
                do k = 2, points
                    other = p
                    p = ((2*k - 1)*x*p - (k - 1)*before)/k
                    before = other
                end do
                slope = points*(x*p - before)/(x**2 - 1.0_r8)
                x = x - p/slope
            end do
            node(i) = x
            weight(i) = 2.0_r8/((1.0_r8 - x**2)*slope**2)
        end do
    end subroutine gauss_rule

    !> The area of the sphere of radius 1 in `symmetry` dimensions.
    pure real(r8) function surface(symmetry)
        integer, intent(in) :: symmetry

        surface = merge(2.0_r8, 2.0_r8*pi*(symmetry - 1), symmetry == 1)
    end function surface

end module sedov_exact
