!> Electrons and positrons that are not degenerate: the series in the fugacity, whose first term is the Maxwell-Boltzmann
!> gas.
!>
!> With eta the electrons' chemical potential (without rest mass) over kT, beta = kT/(m c^2), and densities in n_0 = 8 pi (m c/h)^3,
!>     n = sum_l (-1)^(l+1) A(l) (exp(l eta) - exp(l eta_p)),   P = beta sum_l (-1)^(l+1) A(l)/l (exp(l eta) + exp(l eta_p)),
!> where eta_p = -eta - 2/beta is the positrons' and A(l) the integral of p^2 exp(-l E_kin/beta), which is
!> (beta/l) exp(l/beta) K_2(l/beta) (Chandrasekhar 1939, chapter X; Cox and Giuli, Principles of Stellar Structure, chapter 24).
!> The ideal gas is kept separate from the corrections, so that they are correct to all digits even if small.
module eos_table_boltzmann
    use eos_table_cold, only: cold_free_energy
    use eos_table_taylor, only: exponential, logarithm, logarithm_1p, one_plus_tau, one_plus_xi, operator(*), operator(+), &
        operator(-), operator(/), power, taylor_t
    use pw_kinds, only: r8
    implicit none
    private

    !> The largest classical eta for the series: 60 terms then reach 1e-23.
    real(r8), parameter, public :: boltzmann_most = -1.0_r8
    integer, parameter :: n_terms = 60

    !> Quantities that depend only on the temperature.
    type, public :: isotherm_t
        real(r8) :: beta = 0.0_r8                  !< kT/(m c^2)
        type(taylor_t) :: one                      !< A(1) [n_0]
        type(taylor_t), private :: ratio(n_terms)  ! A(l)/A(1)
        type(taylor_t), private :: pair            ! exp(-2/beta)
        type(taylor_t) :: inverse                  !< 1/beta
    contains
        procedure :: start
        procedure :: classical_eta
        procedure :: series
        procedure :: sparse_positrons
    end type isotherm_t

    public :: maxwell_moments

contains

    !> The integrals of E^k p^2 exp(-b E) over momenta p [m c], E the kinetic energy [m c^2], for k = 0, 1, 2.
    !>
    !> With p = sinh u the integrand is entire and decays doubly exponentially: the trapezoidal rule is exact to rounding
    !> (Trefethen and Weideman, SIAM Review 56, 385, 2014).
    pure function maxwell_moments(b) result(m)
        real(r8), intent(in) :: b
        real(r8) :: m(0:2), u, step, energy, weight
        integer, parameter :: n = 48
        real(r8), parameter :: last = 55.0_r8   ! b E, beyond which the rest is below 1e-20
        integer :: i

        step = 2.0_r8*asinh(sqrt(0.5_r8*last/b))/n
        m = 0.0_r8
        do i = 1, n
            u = i*step
            energy = 2.0_r8*sinh(0.5_r8*u)**2
            weight = step*exp(-b*energy)*sinh(u)**2*(1.0_r8 + energy)
            m = m + weight*[1.0_r8, energy, energy**2]
        end do
    end function maxwell_moments

    !> Set the temperature.
    subroutine start(self, beta)
        class(isotherm_t), intent(inout) :: self
        real(r8), intent(in) :: beta
        integer :: l

        self%beta = beta
        self%inverse = power(one_plus_tau(beta), -1.0_r8)
        self%one = amplitude(1)
        self%ratio(1)%c(0, 0) = 1.0_r8
        do l = 2, n_terms
            self%ratio(l) = amplitude(l)/self%one
        end do
        self%pair = exponential(-2.0_r8*self%inverse)

    contains

        type(taylor_t) function amplitude(l) result(a)
            integer, intent(in) :: l
            real(r8) :: b, m(0:2)

            ! The exponent's l/beta becomes b (1 - tau + tau^2).
            b = l/beta
            m = maxwell_moments(b)*[1.0_r8, b, b**2]
            a%c(0, :) = [m(0), m(1), 0.5_r8*m(2) - m(1)]
        end function amplitude

    end subroutine start

    !> The eta of an ideal gas with pairs of net density n [n_0], which is never above the true one.
    pure real(r8) function classical_eta(self, n) result(eta)
        class(isotherm_t), intent(in) :: self
        real(r8), intent(in) :: n
        real(r8) :: d

        d = n/self%one%c(0, 0)
        eta = log(0.5_r8*(d + sqrt(d**2 + 4.0_r8*self%pair%c(0, 0))))
    end function classical_eta

    !> At a net density n [n_0]: the free energy per net electron minus that at zero temperature, u [m c^2], the chemical
    !> potential w [m c^2] without rest mass, and the logarithm of the positrons' density [n_0]. Only if `classical_eta` is at
    !> most `boltzmann_most`.
    pure subroutine series(self, n, u, w, positrons)
        class(isotherm_t), intent(in) :: self
        real(r8), intent(in) :: n
        type(taylor_t), intent(out) :: u, w, positrons
        type(taylor_t) :: density, d, y, correction, eta, z, ratio

        density = one_plus_xi(n)
        call solve(self, density, d, y, correction)
        ! exp(eta_p)/d
        ratio = 4.0_r8*self%pair/(d*d)
        z = (0.5_r8*ratio)/(power(ratio + 1.0_r8, 0.5_r8) + 1.0_r8)
        eta = logarithm(density) - logarithm(self%one) - logarithm_1p(correction) + logarithm_1p(z)
        u = one_plus_tau(self%beta)*(eta - 1.0_r8 - excess_pressure(self, d, y, z)/(correction + 1.0_r8)) - cold_free_energy(n)
        w = chemical_potential(self, d, eta)

        z = 2.0_r8*self%pair/(y + d)
        positrons = logarithm_1p(positron_correction(self, z))
        if (d%c(0, 0) < 0.5_r8*y%c(0, 0)) then
            ! If there are many, they hardly depend on the density: z does not, and in -eta the dependence cancels.
            positrons = logarithm(self%one) + logarithm(z) + positrons
        else
            positrons = logarithm(self%one) - eta - 2.0_r8*self%inverse + positrons
        end if
    end subroutine series

    !> d = exp(eta) - exp(eta_p) = n/A(1)/(1 + correction) and y = exp(eta) + exp(eta_p); the product of both terms is `pair`.
    !> `density` is n.
    pure subroutine solve(self, density, d, y, correction)
        class(isotherm_t), intent(in) :: self
        type(taylor_t), intent(in) :: density
        type(taylor_t), intent(out) :: d, y, correction
        type(taylor_t) :: before, ratio, sines(2)
        real(r8) :: sign
        integer :: i, l

        do i = 1, 30
            d = density/(self%one*(correction + 1.0_r8))
            ! In both cases a small y is not the result of a cancellation.
            ratio = 4.0_r8*self%pair/(d*d)
            if (ratio%c(0, 0) < 1.0_r8) then
                y = d + d*(ratio/(power(ratio + 1.0_r8, 0.5_r8) + 1.0_r8))
            else
                y = power(d*d + 4.0_r8*self%pair, 0.5_r8)
            end if
            before = correction
            correction = taylor_t()
            sines = first_sines()
            sign = 1.0_r8
            do l = 2, n_terms
                call next_multiple(self, y, sines)
                sign = -sign
                correction = correction + sign*(self%ratio(l)*sines(2))
                if (sines(2)%c(0, 0) < 1.0e-24_r8) exit
            end do
            if (all(abs(correction%c - before%c) <= 1.0e-15_r8*abs(correction%c))) exit
        end do
    end subroutine solve

    !> The excess times 1 + correction in P = beta n (1 + excess): that of the ideal gas of net electrons, and the rest, which is
    !> computed relative to n: terms that are proportional to n then have no second derivative in it, even with rounding. `z`:
    !> exp(eta_p)/d.
    pure type(taylor_t) function excess_pressure(self, d, y, z) result(excess)
        class(isotherm_t), intent(in) :: self
        type(taylor_t), intent(in) :: d, y, z
        type(taylor_t) :: sines(2), cosines(2)
        real(r8) :: sign
        integer :: l

        excess = 2.0_r8*z
        cosines(1) = 2.0_r8*power(d, -1.0_r8)
        cosines(2) = 2.0_r8*z + 1.0_r8
        sines = first_sines()
        sign = 1.0_r8
        do l = 2, n_terms
            call next_multiple(self, y, sines)
            call next_multiple(self, y, cosines)
            sign = -sign
            excess = excess + sign*(self%ratio(l)*((1.0_r8/l)*cosines(2) - sines(2)))
            if (cosines(2)%c(0, 0) < 1.0e-24_r8*min(1.0_r8, excess%c(0, 0))) exit
        end do
    end function excess_pressure

    !> What the positrons' density has beyond the first term of its series, relative to it; `z`: exp(eta_p).
    pure type(taylor_t) function positron_correction(self, z) result(correction)
        class(isotherm_t), intent(in) :: self
        type(taylor_t), intent(in) :: z
        type(taylor_t) :: term
        real(r8) :: sign
        integer :: l

        term = z
        sign = 1.0_r8
        do l = 2, n_terms
            sign = -sign
            correction = correction + sign*(self%ratio(l)*term)
            if (term%c(0, 0) < 1.0e-25_r8) exit
            term = term*z
        end do
    end function positron_correction

    !> (exp(l eta) - exp(l eta_p))/d for l = 0 and 1.
    pure function first_sines() result(sines)
        type(taylor_t) :: sines(2)

        sines(2)%c(0, 0) = 1.0_r8
    end function first_sines

    !> From (exp(l eta) -+ exp(l eta_p))/d for l - 2 and l - 1 to those for l - 1 and l, by the recurrence of Chebyshev's
    !> polynomials.
    pure subroutine next_multiple(self, y, multiples)
        class(isotherm_t), intent(in) :: self
        type(taylor_t), intent(in) :: y
        type(taylor_t), intent(inout) :: multiples(2)

        multiples = [multiples(2), y*multiples(2) - self%pair*multiples(1)]
    end subroutine next_multiple

    !> The chemical potential [m c^2] without rest mass, from d = exp(eta) - exp(eta_p) and eta. Among many pairs it hardly
    !> depends on the density, which a sum of logarithms would lose: there it follows from d = 2 exp(-1/beta) sinh(eta + 1/beta).
    elemental type(taylor_t) function chemical_potential(self, d, eta) result(w)
        class(isotherm_t), intent(in) :: self
        type(taylor_t), intent(in) :: d, eta
        type(taylor_t) :: sine

        if (d%c(0, 0)**2 >= 4.0_r8*self%pair%c(0, 0)) then
            w = one_plus_tau(self%beta)*eta
        else
            sine = 0.5_r8*(d*exponential(self%inverse))
            w = one_plus_tau(self%beta)*logarithm_1p(sine + sine*sine/(power(sine*sine + 1.0_r8, 0.5_r8) + 1.0_r8)) - 1.0_r8
        end if
    end function chemical_potential

    !> The logarithm of the positrons' density [n_0] if they are so few that they are an ideal gas, from the electrons'
    !> chemical potential w [m c^2] without rest mass.
    elemental type(taylor_t) function sparse_positrons(self, w) result(positrons)
        class(isotherm_t), intent(in) :: self
        type(taylor_t), intent(in) :: w

        positrons = logarithm(self%one) - (w + 2.0_r8)*self%inverse
    end function sparse_positrons

end module eos_table_boltzmann
