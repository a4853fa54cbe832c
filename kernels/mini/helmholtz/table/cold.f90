!> Completely degenerate electrons: zero temperature, all states filled up to the Fermi momentum.
!>
!> Chandrasekhar, An Introduction to the Study of Stellar Structure (1939), chapter X. All quantities are in units of the
!> electron: momenta of m c, energies of m c^2, densities n of n_0 = 8 pi (m c/h)^3, so that n = q^3/3 for the Fermi
!> momentum q.
module eos_table_cold
    use eos_table_taylor, only: taylor_t
    use pw_kinds, only: r8
    implicit none
    private

    !> Below this Fermi momentum power series are used: the closed forms lose digits as q^-5.
    real(r8), parameter :: series_below = 0.5_r8

    public :: fermi_momentum, kinetic_energy, cold_energy, cold_pressure, cold_point, cold_free_energy

contains

    !> The Fermi momentum q [m c] at a density n [n_0].
    elemental real(r8) function fermi_momentum(n) result(q)
        real(r8), intent(in) :: n

        q = (3.0_r8*n)**(1.0_r8/3.0_r8)
    end function fermi_momentum

    !> The kinetic energy [m c^2] of an electron of momentum q [m c].
    elemental real(r8) function kinetic_energy(q) result(energy)
        real(r8), intent(in) :: q

        energy = q**2/(1.0_r8 + sqrt(1.0_r8 + q**2))
    end function kinetic_energy

    !> The kinetic energy density [n_0 m c^2]: the integral of p^2 (sqrt(1 + p^2) - 1) up to the Fermi momentum q [m c].
    elemental real(r8) function cold_energy(q) result(energy)
        real(r8), intent(in) :: q
        real(r8) :: term
        integer :: k

        if (q >= series_below) then
            energy = (q*(2.0_r8*q**2 + 1.0_r8)*sqrt(1.0_r8 + q**2) - asinh(q))/8.0_r8 - q**3/3.0_r8
            return
        end if
        energy = 0.0_r8
        term = q**3
        do k = 1, 30
            term = term*q**2*(1.5_r8 - k)/k
            energy = energy + term/(2*k + 3)
        end do
    end function cold_energy

    !> The pressure [n_0 m c^2]: the integral of p^4/(3 sqrt(1 + p^2)) up to the Fermi momentum q [m c].
    elemental real(r8) function cold_pressure(q) result(pressure)
        real(r8), intent(in) :: q
        real(r8) :: term
        integer :: k

        if (q >= series_below) then
            pressure = (q*(2.0_r8*q**2/3.0_r8 - 1.0_r8)*sqrt(1.0_r8 + q**2) + asinh(q))/8.0_r8
            return
        end if
        term = q**5/3.0_r8
        pressure = term/5.0_r8
        do k = 1, 30
            term = term*q**2*(0.5_r8 - k)/k
            pressure = pressure + term/(2*k + 5)
        end do
    end function cold_pressure

    !> The free energy per electron, u [m c^2], at a density n [n_0], and n du/dn and n^2 d2u/dn2.
    pure function cold_point(n) result(u)
        real(r8), intent(in) :: n
        real(r8) :: u(3), q, pressure, stiffness

        q = fermi_momentum(n)
        pressure = cold_pressure(q)/n
        ! d pressure / d n = n d(chemical potential)/d n, where the latter is the kinetic energy at q.
        stiffness = q**2/(3.0_r8*sqrt(1.0_r8 + q**2))
        u = [cold_energy(q)/n, pressure, stiffness - 2.0_r8*pressure]
    end function cold_point

    !> The same as a Taylor polynomial in the density.
    pure type(taylor_t) function cold_free_energy(n) result(u)
        real(r8), intent(in) :: n

        u%c(:, 0) = cold_point(n)*[1.0_r8, 1.0_r8, 0.5_r8]
    end function cold_free_energy

end module eos_table_cold
