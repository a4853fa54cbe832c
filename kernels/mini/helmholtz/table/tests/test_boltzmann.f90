!> The nondegenerate gas: Bessel functions, the ideal gas, thin pairs.
program test_boltzmann
    use eos_table_boltzmann, only: isotherm_t, maxwell_moments
    use eos_table_cold, only: cold_free_energy
    use eos_table_taylor, only: operator(+), taylor_t
    use eos_table_testing, only: agree, expect, finish
    use pw_kinds, only: r8
    implicit none
    ! exp(b) K_2(b)/b, by mpmath 1.4; K_2(1) = 1.6248388986351775 is in Abramowitz and Stegun, table 9.8, too.
    real(r8), parameter :: b(4) = [0.05_r8, 1.0_r8, 10.0_r8, 1.0e6_r8]
    real(r8), parameter :: wanted(4) = [16809.850210098754804_r8, 4.4167700523334115077_r8, 0.047378524855575641596_r8, &
                                        1.2533164872805358266e-9_r8]
    type(isotherm_t) :: isotherm
    type(taylor_t) :: u, w, positrons, cold
    real(r8) :: m(0:2), n, beta, eta, pairs, first
    integer :: i

    do i = 1, size(b)
        m = maxwell_moments(b(i))
        call agree('K_2', m(0), wanted(i), 4.0e-15_r8)
    end do
    ! Mean kinetic energies: 3/2 kT, with relativity's 15/8 kT/(m c^2), and 3 kT.
    m = maxwell_moments(1.0e5_r8)
    call agree('slow energy', m(1)/m(0), 1.5e-5_r8*(1.0_r8 + 1.25e-5_r8), 1.0e-9_r8)
    m = maxwell_moments(1.0e-4_r8)
    call agree('fast energy', m(1)/m(0), 3.0e4_r8 - 1.0_r8, 1.0e-7_r8)

    ! An ideal gas: u = kT (eta - 1) with Sackur and Tetrode's eta, P = n kT exactly, c_v = 3/2.
    beta = 1.0e-6_r8
    n = 1.0e-17_r8
    call isotherm%start(beta)
    call isotherm%series(n, u, w, positrons)
    cold = cold_free_energy(n)
    u = u + cold
    eta = log(n/(sqrt(0.5_r8*acos(-1.0_r8))*beta**1.5_r8*(1.0_r8 + 15.0_r8/8.0_r8*beta)))
    call agree('free energy', u%c(0, 0), beta*(eta - 1.0_r8), 1.0e-9_r8)
    call agree('pressure', u%c(1, 0), beta, 1.0e-8_r8)
    call agree('entropy', -u%c(0, 1)/beta, 2.5_r8 - eta, 1.0e-6_r8)
    call agree('heat capacity', -2.0_r8*u%c(0, 2)/beta, 1.5_r8, 1.0e-5_r8)
    call agree('positrons', positrons%c(0, 0), log(n) - 2.0_r8*eta - 2.0_r8/beta, 1.0e-14_r8)
    call agree('chemical potential', w%c(0, 0), beta*eta, 1.0e-9_r8)
    call agree('its change with density', w%c(1, 0), beta, 1.0e-8_r8)
    call agree('classical eta', isotherm%classical_eta(n), eta, 1.0e-9_r8)
    call agree('and their change', positrons%c(1, 0), -1.0_r8, 1.0e-8_r8)

    ! Its first quantum correction, P = n kT (1 + exp(eta)/2^(5/2)), from the remainder of the ideal gas.
    call agree('quantum pressure', u%c(1, 2), first_correction(), 1.0e-5_r8)

    ! Thin pairs with negligible net electrons: n_pos = A(1) exp(-1/beta), P = 2 n_pos kT.
    beta = 0.05_r8
    call isotherm%start(beta)
    n = 1.0e-20_r8
    call isotherm%series(n, u, w, positrons)
    first = isotherm%one%c(0, 0)
    pairs = first*exp(-1.0_r8/beta)
    call agree('pairs', exp(positrons%c(0, 0)), pairs, 1.0e-8_r8)
    call agree('their pressure', u%c(1, 0), 2.0_r8*pairs*beta/n, 1.0e-8_r8)
    ! n_pos = n_ele - n, the product of both is fixed.
    call agree('and its reduction by net electrons', positrons%c(1, 0), -0.5_r8*n/pairs, 1.0e-7_r8)
    ! n = 2 n_pos sinh(eta + 1/beta): linear, and 1e-11 of kT.
    call agree('their chemical potential', w%c(0, 0), -1.0_r8, 1.0e-10_r8)
    call agree('and its change', w%c(1, 0), 0.5_r8*beta*n/pairs, 1.0e-8_r8)
    call agree('which does not depend on the density', w%c(2, 0)/w%c(1, 0) + 1.0_r8, 1.0_r8, 1.0e-14_r8)
    call expect(isotherm%classical_eta(n) > -1.0_r8/beta - 1.0e-12_r8, 'eta')
    call finish()

contains

    !> The tau^2 part of kT exp(eta)/2^(5/2), proportional to T^(-1/2).
    real(r8) function first_correction()
        first_correction = beta*exp(eta)/2.0_r8**2.5_r8*(-0.5_r8)*(-1.5_r8)/2.0_r8
    end function first_correction

end program test_boltzmann
