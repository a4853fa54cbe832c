!> Strongly degenerate electrons: Sommerfeld's expansion about the Fermi surface, as differences from the gas at zero
!> temperature.
!>
!> The density is the mean of G(E) = p(E)^3/3 over the kernel k(t) = 1/(4 cosh^2(t/2)) about the chemical potential w,
!>     n = < G(w + beta t) >,   P = < H(w + beta t) >,   H' = G,
!> so that, with G's Taylor coefficients c(m) at w, n = G(w) + sum_j kappa(j) beta^(2j) c(2j), kappa(j) = < t^(2j) > =
!> 2 (2j)! (1 - 2^(1-2j)) zeta(2j) (Sommerfeld, Z. Phys. 47, 1, 1928; Chandrasekhar 1939, chapter X, eq. 169 on). The series is
!> asymptotic; if w is 50 kT or more, its smallest terms, and what it omits (states below zero momentum, positrons), are
!> of the order exp(-50). The chemical potential is computed as its distance from the Fermi energy of the cold gas.
module eos_table_sommerfeld
    use eos_table_boltzmann, only: isotherm_t
    use eos_table_taylor, only: one_plus_tau, one_plus_xi, operator(*), operator(+), operator(-), operator(/), power, &
        power_minus_1, taylor_t
    use pw_kinds, only: r8
    implicit none
    private

    !> The smallest Fermi energy over kT for the expansion.
    real(r8), parameter, public :: sommerfeld_least = 50.0_r8
    integer, parameter :: n_terms = 17

    !> Sums of (-1)^(k+1) k^-2j, Dirichlet's eta function at 2 j (Abramowitz and Stegun 23.2.24 and table 23.3).
    real(r8), parameter :: pi = 3.14159265358979323846264338327950288_r8
    real(r8), parameter :: alternating(3) = [pi**2/12.0_r8, 7.0_r8*pi**4/720.0_r8, 31.0_r8*pi**6/30240.0_r8]

    public :: sommerfeld_expansion, kernel_moments

contains

    !> < t^(2j) > for j = 1, 2, ...
    pure function kernel_moments(n) result(kappa)
        integer, intent(in) :: n
        real(r8) :: kappa(n), factorial, eta
        integer :: j, k

        factorial = 1.0_r8
        do j = 1, n
            factorial = factorial*(2*j - 1)*(2*j)
            if (j <= size(alternating)) then
                eta = alternating(j)
            else
                eta = 0.0_r8
                do k = 120, 1, -1
                    eta = eta + merge(1.0_r8, -1.0_r8, modulo(k, 2) == 1)/real(k, r8)**(2*j)
                end do
            end if
            kappa(j) = 2.0_r8*factorial*eta
        end do
    end function kernel_moments

    !> At a density n [n_0] and a temperature: the free energy per electron minus that at zero temperature, u [m c^2], the
    !> chemical potential w [m c^2] without rest mass, and the logarithm of the positrons' density [n_0].
    pure subroutine sommerfeld_expansion(isotherm, kappa, n, u, w, positrons)
        type(isotherm_t), intent(in) :: isotherm
        real(r8), intent(in) :: kappa(:), n
        type(taylor_t), intent(out) :: u, w, positrons
        type(taylor_t) :: density, q_fermi, e_fermi, fermi, q2, energy, delta, shortfall, beta, c(0:2*n_terms), before
        integer :: i, m

        density = one_plus_xi(n)
        beta = one_plus_tau(isotherm%beta)
        q_fermi = power(3.0_r8*density, 1.0_r8/3.0_r8)
        e_fermi = power(q_fermi*q_fermi + 1.0_r8, 0.5_r8)
        fermi = q_fermi*q_fermi/(e_fermi + 1.0_r8)
        q2 = q_fermi*q_fermi
        energy = e_fermi
        delta = taylor_t()
        do i = 1, 20
            call coefficients(q2, energy, beta, c)
            ! G(w) = n - shortfall
            shortfall = taylor_t()
            do m = 2*n_terms, 2, -2
                shortfall = shortfall + kappa(m/2)*c(m)
            end do
            before = delta
            delta = q_fermi*q_fermi*power_minus_1(-(shortfall/density), 2.0_r8/3.0_r8)
            q2 = q_fermi*q_fermi + delta
            energy = power(q2 + 1.0_r8, 0.5_r8)
            delta = delta/(energy + e_fermi)
            if (all(abs(delta%c - before%c) <= 4.0_r8*epsilon(1.0_r8)*abs(delta%c(0, 0)))) exit
        end do
        call coefficients(q2, energy, beta, c)

        ! n w - P minus the same at the Fermi energy: w n changes by delta n, P at zero temperature by the integral of G over
        ! delta, which is evaluated backwards from w, and P by the kernel's width.
        before = delta/beta
        u = taylor_t()
        do m = 7, 1, -1
            u = before*(u + ((-1.0_r8)**m/(m + 1))*c(m))
        end do
        u = -(delta*(u - shortfall))
        do m = 2*n_terms - 1, 1, -2
            u = u - (kappa((m + 1)/2)/(m + 1))*(beta*c(m))
        end do
        u = u/density
        w = fermi + delta
        positrons = isotherm%sparse_positrons(w)
    end subroutine sommerfeld_expansion

    !> The Taylor coefficients of G = p^3/3 in the energy, times beta^m, at the momentum squared q2 and the energy with rest mass.
    !> G^(2/3) is a quadratic polynomial Q, so that 2 Q G' = 3 Q' G relates three of them.
    pure subroutine coefficients(q2, energy, beta, c)
        type(taylor_t), intent(in) :: q2, energy, beta
        type(taylor_t), intent(out) :: c(0:2*n_terms)
        type(taylor_t) :: first, second
        integer :: m

        second = beta/q2
        first = 2.0_r8*(energy*second)
        second = beta*second
        c(0) = (1.0_r8/3.0_r8)*power(q2, 1.5_r8)
        c(1) = beta*energy*power(q2, 0.5_r8)
        do m = 1, 2*n_terms - 1
            c(m + 1) = ((1.5_r8 - m)/(m + 1))*(first*c(m)) + ((4.0_r8 - m)/(m + 1))*(second*c(m - 1))
        end do
    end subroutine coefficients

end module eos_table_sommerfeld
