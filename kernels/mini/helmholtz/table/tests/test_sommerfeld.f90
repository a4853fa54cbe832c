!> Sommerfeld's expansion: its numbers, its leading terms, and the trapezoidal rule where both are valid.
program test_sommerfeld
    use eos_table_boltzmann, only: isotherm_t
    use eos_table_cold, only: fermi_momentum
    use eos_table_fermi_dirac, only: fermi_dirac_point
    use eos_table_sommerfeld, only: kernel_moments, sommerfeld_expansion
    use eos_table_taylor, only: taylor_t
    use eos_table_testing, only: agree, expect, finish
    use pw_kinds, only: r8
    implicit none
    real(r8), parameter :: pi = acos(-1.0_r8)
    real(r8) :: kappa(17)
    type(isotherm_t) :: isotherm
    type(taylor_t) :: u, v, w, w_rule, positrons, more
    real(r8) :: relative(0:2, 0:1)
    real(r8) :: q, n, beta, leading
    logical :: ok
    integer :: i

    kappa = kernel_moments(17)
    call agree('<t^2>', kappa(1), pi**2/3.0_r8, 1.0e-15_r8)
    call agree('<t^4>', kappa(2), 7.0_r8*pi**4/15.0_r8, 1.0e-15_r8)
    call agree('<t^6>', kappa(3), 31.0_r8*pi**6/21.0_r8, 1.0e-15_r8)
    call agree('<t^8>', kappa(4), 127.0_r8*pi**8/15.0_r8, 2.0e-15_r8)
    call agree('<t^10>', kappa(5), 2555.0_r8*pi**10/33.0_r8, 2.0e-15_r8)

    ! Nearly cold: -pi^2/6 (kT)^2 q E/n, which is only 1e-20 of the free energy.
    do i = -6, 7
        n = 10.0_r8**i
        q = fermi_momentum(n)
        beta = 1.0e-9_r8*q**2/(1.0_r8 + q)
        call isotherm%start(beta)
        call sommerfeld_expansion(isotherm, kappa, n, u, w, positrons)
        leading = -pi**2/6.0_r8*beta**2*q*sqrt(1.0_r8 + q**2)/n
        call agree('thermal free energy', u%c(0, 0), leading, 1.0e-14_r8)
        call agree('entropy', u%c(0, 1), 2.0_r8*leading, 1.0e-14_r8)
        call agree('heat capacity', u%c(0, 2), leading, 1.0e-14_r8)
        ! d ln(q E/n)/d ln n
        leading = leading*((1.0_r8 + q**2/(1.0_r8 + q**2))/3.0_r8 - 1.0_r8)
        call agree('thermal pressure', u%c(1, 0), leading, 1.0e-14_r8)
        call agree('d2p/dT2', u%c(1, 2), leading, 1.0e-14_r8)
    end do

    ! The next term: without relativity F/n is E_F (-pi^2/4 z^2 + pi^4/80 z^4), z = kT/E_F.
    n = 1.0e-9_r8
    q = fermi_momentum(n)
    beta = 1.0e-3_r8*0.5_r8*q**2
    call isotherm%start(beta)
    call sommerfeld_expansion(isotherm, kappa, n, u, w, positrons)
    call agree('two terms', u%c(0, 0), 0.5_r8*q**2*(-pi**2/4.0e6_r8 + pi**4/80.0e12_r8), 2.0e-6_r8)

    ! Where both hold they agree; the rule subtracts the cold gas, which costs it some digits.
    do i = -8, 4
        n = 10.0_r8**i
        q = fermi_momentum(n)
        beta = q**2/(1.0_r8 + sqrt(1.0_r8 + q**2))/55.0_r8
        call isotherm%start(beta)
        call sommerfeld_expansion(isotherm, kappa, n, u, w, positrons)
        call fermi_dirac_point(isotherm, n, v, w_rule, more, ok)
        call expect(ok, 'a solution')
        call expect(all(abs(u%c/v%c - 1.0_r8) < 2.0e-11_r8), 'both methods')
        relative = abs(w%c(:, :1)/w_rule%c(:, :1) - 1.0_r8)
        call expect(all(relative(:, 0) < 1.0e-12_r8) .and. all(relative(:1, 1) < 2.0e-11_r8), 'chemical potentials by both')
        ! The temperature changes the second derivative in the density by only 1e-6 of what the rule sums.
        call expect(relative(2, 1) < 1.0e-9_r8, 'the third derivative of chemical potentials by both')
        call expect(all(abs(positrons%c(:1, :1)/more%c(:1, :1) - 1.0_r8) < 2.0e-11_r8), 'positrons by both methods')
    end do
    call finish()

end program test_sommerfeld
