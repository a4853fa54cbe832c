!> Completely degenerate electrons: closed forms, limits, derivatives, and where the series meets the closed form.
program test_cold
    use eos_table_cold, only: cold_energy, cold_free_energy, cold_point, cold_pressure, fermi_momentum, kinetic_energy
    use eos_table_taylor, only: taylor_t
    use eos_table_testing, only: agree, finish
    use pw_kinds, only: r8
    implicit none
    real(r8) :: q, n, h, u(3), around(3, -2:2)
    type(taylor_t) :: t
    integer :: i, k

    ! Chandrasekhar's f(x) = 24 P = x (2 x^2 - 3) sqrt(x^2 + 1) + 3 arsinh x and g(x) = 24 U, at x = 1.
    call agree('pressure at 1', 24.0_r8*cold_pressure(1.0_r8), 3.0_r8*log(1.0_r8 + sqrt(2.0_r8)) - sqrt(2.0_r8), 1.0e-15_r8)
    call agree('energy at 1', 24.0_r8*cold_energy(1.0_r8), 9.0_r8*sqrt(2.0_r8) - 8.0_r8 - 3.0_r8*log(1.0_r8 + sqrt(2.0_r8)), &
               4.0e-15_r8)
    ! Both sides of the momentum where the series ends, against a quadrature.
    do i = -1, 1, 2
        q = 0.5_r8 + i*1.0e-12_r8
        call agree('pressure near 1/2', cold_pressure(q), simpson(q, .true.), 3.0e-14_r8)
        call agree('energy near 1/2', cold_energy(q), simpson(q, .false.), 3.0e-14_r8)
    end do
    ! Not relativistic, with the first correction; ultra-relativistic with two.
    q = 1.0e-4_r8
    call agree('slow pressure', cold_pressure(q), q**5/15.0_r8*(1.0_r8 - 5.0_r8*q**2/14.0_r8), 1.0e-15_r8)
    call agree('slow energy', cold_energy(q), q**5/10.0_r8*(1.0_r8 - 5.0_r8*q**2/28.0_r8), 1.0e-15_r8)
    q = 1.0e4_r8
    call agree('fast pressure', cold_pressure(q), q**4/12.0_r8*(1.0_r8 - 1.0_r8/q**2), 1.0e-14_r8)
    call agree('fast energy', cold_energy(q), q**4/4.0_r8*(1.0_r8 - 4.0_r8/(3.0_r8*q) + 1.0_r8/q**2), 1.0e-14_r8)
    call agree('momentum', fermi_momentum(9.0_r8), 3.0_r8, 1.0e-15_r8)
    call agree('kinetic energy', kinetic_energy(1.0e-10_r8), 0.5e-20_r8, 1.0e-15_r8)

    do i = -18, 9
        n = 10.0_r8**i*1.37_r8
        u = cold_point(n)
        q = fermi_momentum(n)
        ! At zero temperature n (u + n du/dn) is n times the Fermi energy.
        call agree('chemical potential', u(1) + u(2), kinetic_energy(q), 1.0e-14_r8)
        h = 1.0e-2_r8
        do k = -2, 2
            around(:, k) = cold_point(n*(1.0_r8 + k*h))
        end do
        call agree('first derivative', slope(around(1, :)), u(2), 1.0e-7_r8)
        call agree('second derivative', slope(around(2, :)/(1.0_r8 + h*[-2, -1, 0, 1, 2])), u(3), 1.0e-6_r8)
        t = cold_free_energy(n)
        call agree('polynomial', t%c(2, 0), 0.5_r8*u(3), 0.0_r8)
    end do
    call finish()

contains

    !> The derivative in the middle of five points, to fourth order.
    real(r8) function slope(f)
        real(r8), intent(in) :: f(-2:2)

        slope = (8.0_r8*(f(1) - f(-1)) - (f(2) - f(-2)))/(12.0_r8*h)
    end function slope

    real(r8) function simpson(q, pressure)
        real(r8), intent(in) :: q
        logical, intent(in) :: pressure
        integer, parameter :: n = 4000
        real(r8) :: p, value
        integer :: i

        simpson = 0.0_r8
        do i = 1, n
            p = q*i/n
            value = p**2*kinetic_energy(p)
            if (pressure) value = p**4/(3.0_r8*sqrt(1.0_r8 + p**2))
            simpson = simpson + value*merge(4.0_r8, 2.0_r8, modulo(i, 2) == 1)
            if (i == n) simpson = simpson - value
        end do
        simpson = simpson*q/(3.0_r8*n)
    end function simpson

end program test_cold
