!> The equation of state where its analytic form is known, and against published values.
program test_limits
    use helmholtz, only: helmholtz_t
    use helmholtz_columns, only: c_abar, c_cs, c_dens, c_eint, c_entr, c_eta, c_gam1, c_nele, c_npos, c_pres, c_temp, c_zbar, &
        given_temperature, n_columns
    use helmholtz_constants, only: avogadro, boltzmann, compton_wavelength, electron_mass, electron_rest_energy, gas_constant, &
        pi, planck, radiation_constant, speed_of_light
    use helmholtz_testing, only: expect_near, failures, load
    use pw_error, only: error_t
    use pw_kinds, only: r8
    implicit none
    type(helmholtz_t) :: eos, coulomb
    type(error_t) :: error
    real(r8), parameter :: a = 12.0_r8, z = 6.0_r8, ye = z/a

    call load(eos, .false.)
    call load(coulomb, .true.)
    call ideal_gas()
    call cold()
    call radiation()
    call pairs()
    call another_program()
    call one_component_plasma()
    if (failures > 0) error stop 'a limit is wrong'

contains

    function at(which, dens, temp) result(zone)
        type(helmholtz_t), intent(in) :: which
        real(r8), intent(in) :: dens, temp
        real(r8) :: zone(n_columns), row(1, n_columns)

        row = 0.0_r8
        row(1, [c_dens, c_temp, c_abar, c_zbar]) = [dens, temp, a, z]
        call which%rows(given_temperature, 1, row, error)
        if (error%failed()) print *, error%message
        if (error%failed()) error stop 'a good zone fails'
        zone = row(1, :)
    end function at

    !> Not degenerate, hardly relativistic: p = n k T (1 + n lambda^3/2^(7/2)) of the electrons, to the first order; e = 3/2 n k T
    !> (1 + 5/4 kT/mc^2 + n lambda^3/2^(7/2)); s of all particles after Sackur and Tetrode.
    subroutine ideal_gas()
        real(r8), parameter :: dens = 1.0e-9_r8, temp = 5.0e4_r8
        real(r8) :: zone(n_columns), kt, n_ions, n_ele, lambda3, pres, eint, entr, light, theta

        zone = at(eos, dens, temp)
        kt = boltzmann*temp
        theta = kt/electron_rest_energy
        n_ions = avogadro*dens/a
        n_ele = z*n_ions
        lambda3 = (planck/sqrt(2.0_r8*pi*electron_mass*kt))**3
        light = radiation_constant*temp**4
        pres = (n_ions + n_ele*(1.0_r8 + n_ele*lambda3/2.0_r8**3.5_r8))*kt + light/3.0_r8
        eint = (1.5_r8*(n_ions + n_ele*(1.0_r8 + 1.25_r8*theta + n_ele*lambda3/2.0_r8**3.5_r8))*kt + light)/dens
        ! (1 + 15/8 theta) is in the partition function, and 15/8 theta more in the mean energy.
        entr = n_ions*(2.5_r8 - log(n_ions*(planck/sqrt(2.0_r8*pi*a/avogadro*kt))**3)) + &
               n_ele*(2.5_r8 - log(0.5_r8*n_ele*lambda3) + 3.75_r8*theta)
        entr = (boltzmann*entr + 4.0_r8*light/(3.0_r8*temp))/dens
        call expect_near(zone(c_pres), pres, 1.0e-9_r8, 'pressure of an ideal gas')
        call expect_near(zone(c_eint), eint, 1.0e-9_r8, 'energy of an ideal gas')
        call expect_near(zone(c_entr), entr, 1.0e-9_r8, 'entropy of an ideal gas')
        zone = at(eos, 1.0e-4_r8, 5.0e4_r8)
        call expect_near(zone(c_gam1), 5.0_r8/3.0_r8, 1.0e-3_r8, 'adiabatic exponent of an ideal gas')
        call expect_near(zone(c_cs), sqrt(5.0_r8/3.0_r8*gas_constant*5.0e4_r8*(1.0_r8 + z)/a), 1.0e-3_r8, 'sound in an ideal gas')
        ! exp(eta) = n lambda^3/2.
        zone = at(eos, dens, temp)
        call expect_near(zone(c_eta), log(0.5_r8*n_ele*lambda3) - 1.875_r8*theta, 1.0e-8_r8, 'eta of an ideal gas')
    end subroutine ideal_gas

    !> Fully degenerate at any relativity parameter (Chandrasekhar 1939, ch. 10), and its limits with the constants of textbooks
    !> (Kippenhahn & Weigert, ch. 15; Shapiro & Teukolsky, ch. 2): p = 1.0036e13 (rho/mu_e)^(5/3), 1.2435e15 (rho/mu_e)^(4/3).
    subroutine cold()
        real(r8), parameter :: temp = 1.0e4_r8
        real(r8) :: zone(n_columns), dens, x, unit, phi, ions(2)
        integer :: i

        unit = pi/3.0_r8*electron_rest_energy/compton_wavelength**3
        do i = 4, 14
            dens = 10.0_r8**i
            zone = at(eos, dens, temp)
            ions = gas_constant*temp/a*[dens, 1.5_r8] + radiation_constant*temp**4*[1.0_r8/3.0_r8, 1.0_r8/dens]
            x = compton_wavelength*(3.0_r8*avogadro*dens*ye/(8.0_r8*pi))**(1.0_r8/3.0_r8)
            phi = x*(2.0_r8*x**2 - 3.0_r8)*sqrt(1.0_r8 + x**2) + 3.0_r8*asinh(x)
            ! The difference loses digits at small x, and the temperature is not quite zero.
            call expect_near(zone(c_pres) - ions(1), unit*phi, 3.0e-9_r8 + 1.0e-15_r8/x**4 + 1.0e-8_r8/x**4, 'cold pressure')
            call expect_near(zone(c_eint) - ions(2), unit*(8.0_r8*x**3*(sqrt(1.0_r8 + x**2) - 1.0_r8) - phi)/dens, &
                             3.0e-9_r8 + 1.0e-8_r8/x**4, 'cold energy')
            call expect_near(zone(c_eta)*boltzmann*temp, electron_rest_energy*(x**2/(1.0_r8 + sqrt(1.0_r8 + x**2))), &
                             1.0e-6_r8, 'Fermi energy')
        end do
        zone = at(eos, 1.0e3_r8, 1.0e3_r8)
        x = (1.0e3_r8*ye/9.74e5_r8)**(1.0_r8/3.0_r8)
        call expect_near(zone(c_pres), 1.0036e13_r8*(1.0e3_r8*ye)**(5.0_r8/3.0_r8)*(1.0_r8 - 5.0_r8/14.0_r8*x**2), 1.0e-3_r8, &
                         'textbook: not relativistic')
        zone = at(eos, 1.0e14_r8, 1.0e6_r8)
        x = (1.0e14_r8*ye/9.74e5_r8)**(1.0_r8/3.0_r8)
        call expect_near(zone(c_pres), 1.2435e15_r8*(1.0e14_r8*ye)**(4.0_r8/3.0_r8)*(1.0_r8 - 1.0_r8/x**2), 2.0e-4_r8, &
                         'textbook: ultra-relativistic')
        call expect_near(zone(c_gam1), 4.0_r8/3.0_r8, 1.0e-4_r8, 'adiabatic exponent, ultra-relativistic')
    end subroutine cold

    subroutine radiation()
        real(r8), parameter :: dens = 1.0e-11_r8, temp = 1.0e7_r8
        real(r8) :: zone(n_columns), u

        zone = at(eos, dens, temp)
        u = radiation_constant*temp**4
        call expect_near(zone(c_pres), u/3.0_r8, 1.0e-8_r8, 'pressure of radiation')
        call expect_near(zone(c_eint), u/dens, 1.0e-8_r8, 'energy of radiation')
        call expect_near(zone(c_entr), 4.0_r8*u/(3.0_r8*temp*dens), 1.0e-6_r8, 'entropy of radiation')
        call expect_near(zone(c_gam1), 4.0_r8/3.0_r8, 1.0e-6_r8, 'adiabatic exponent of radiation')
        call expect_near(zone(c_cs), speed_of_light/sqrt(3.0_r8), 0.2_r8, 'sound in radiation')
    end subroutine radiation

    !> Ultra-relativistic pairs next to radiation: p = 11/12 a T^4, minus 7/12 a T^4 times 15/(7 pi^2) (mc^2/kT)^2; n of
    !> either kind
    !> 12 pi zeta(3) (kT/hc)^3 (Landau & Lifshitz, Statistical Physics I, section 105).
    subroutine pairs()
        real(r8), parameter :: dens = 1.0_r8, temp = 1.0e12_r8, zeta3 = 1.2020569031595943_r8
        real(r8) :: zone(n_columns), u, mass2

        zone = at(eos, dens, temp)
        u = radiation_constant*temp**4
        mass2 = (electron_rest_energy/(boltzmann*temp))**2
        call expect_near(zone(c_pres), u*(11.0_r8 - 7.0_r8*15.0_r8/(7.0_r8*pi**2)*mass2)/12.0_r8, 1.0e-8_r8, 'pressure of pairs')
        call expect_near(zone(c_eint)*dens, u*(11.0_r8/4.0_r8 - 7.0_r8/12.0_r8*15.0_r8/(7.0_r8*pi**2)*mass2), 1.0e-8_r8, &
                         'energy of pairs')
        call expect_near(zone(c_npos), 12.0_r8*pi*zeta3*(boltzmann*temp/(planck*speed_of_light))**3, 2.0e-5_r8, &
                         'number of positrons')
        call expect_near(zone(c_nele), zone(c_npos), 1.0e-6_r8, 'number of electrons')
        call expect_near(zone(c_gam1), 4.0_r8/3.0_r8, 1.0e-4_r8, 'adiabatic exponent of pairs')
        call expect_near(zone(c_eta), -sqrt(mass2), 1.0e-6_r8, 'chemical potential of pairs')
    end subroutine pairs

    !> Electrons and positrons by pynucastro 3.1.0 (Smith et al., ApJ 947, 65, 2023; class ElectronEOS, Gauss quadrature
    !> after Gong et al. 2001, constants of CODATA 2022), Ye = 1/2: density, temperature, pressure and specific internal energy of
    !> both kinds, eta, n_pos. Its energy of a positron includes 2 m c^2.
    subroutine another_program()
        real(r8), parameter :: values(6, 7) = reshape([ &
            1.0e-4_r8, 1.0e6_r8, 4157235888.955219_r8, 62371681071481.984_r8, -11.985659020382139_r8, 0.0_r8, &
            1.0e2_r8, 1.0e7_r8, 4.3008973558419624e16_r8, 646515960025088.2_r8, -1.5576896554545585_r8, 0.0_r8, &
            1.0e6_r8, 1.0e8_r8, 2.664163808481639e22_r8, 4.370551411921872e16_r8, 16.59014500850222_r8, 9.684373096065995e-32_r8, &
            2.2e9_r8, 4.0e8_r8, 1.399820087717361e27_r8, 1.696997258332896e18_r8, 140.250270449221_r8, 7.138057003943935e-46_r8, &
            1.0e9_r8, 5.0e9_r8, 5.2186878894293305e26_r8, 1.362019361546363e18_r8, 8.037766712172486_r8, 1.5719854355599256e26_r8, &
            1.0e2_r8, 1.0e9_r8, 1.5004084135546002e20_r8, 1.1300527909824805e19_r8, -5.90214818183723_r8, 5.2809331640246e26_r8, &
            1.0e6_r8, 3.0e10_r8, 3.545013828123682e27_r8, 1.0693506464531666e22_r8, -0.1972591137999813_r8, &
            4.0761150351032465e32_r8], [6, 7])
        real(r8) :: zone(n_columns), rest(2)
        integer :: i

        do i = 1, size(values, 2)
            zone = at(eos, values(1, i), values(2, i))
            rest = gas_constant*values(2, i)/a*[values(1, i), 1.5_r8] + &
                   radiation_constant*values(2, i)**4*[1.0_r8/3.0_r8, 1.0_r8/values(1, i)]
            call expect_near(zone(c_pres) - rest(1), values(3, i), 1.0e-8_r8, 'pressure by another program')
            call expect_near(zone(c_eint) - rest(2), values(4, i), 1.0e-8_r8, 'energy by another program')
            call expect_near(zone(c_eta), values(5, i), 1.0e-6_r8, 'eta by another program')
            if (values(6, i) > 0.0_r8) call expect_near(zone(c_npos), values(6, i), 1.0e-4_r8, 'positrons by another program')
        end do
    end subroutine another_program

    !> Coulomb corrections at Gamma = 1, 10 and 100 in units of N k T, from the fits' published form, and in a weakly coupled plasma
    !> that of Debye and Hueckel, u = -sqrt(3)/2 Gamma^(3/2).
    subroutine one_component_plasma()
        real(r8), parameter :: dens = 1.0e4_r8
        real(r8) :: gammas(4), with(n_columns), without(n_columns), temp, gamma, rt, u
        integer :: i

        gammas = [1.0e-3_r8, 1.0_r8, 10.0_r8, 100.0_r8]
        do i = 1, size(gammas)
            gamma = gammas(i)
            temp = (z*4.80320471257026372e-10_r8)**2/(boltzmann*gamma)*(4.0_r8*pi*avogadro*dens/(3.0_r8*a))**(1.0_r8/3.0_r8)
            rt = gas_constant*temp/a
            with = at(coulomb, dens, temp)
            without = at(eos, dens, temp)
            u = -0.898004_r8*gamma + 0.96786_r8*gamma**0.25_r8 + 0.220703_r8/gamma**0.25_r8 - 0.86097_r8
            if (gamma < 1.0_r8) u = -0.5_r8*sqrt(3.0_r8)*gamma**1.5_r8
            call expect_near((with(c_eint) - without(c_eint))/rt, u, merge(0.02_r8, 3.0e-5_r8, gamma < 1.0_r8), 'Coulomb energy')
            call expect_near((with(c_pres) - without(c_pres))/(dens*rt), u/3.0_r8, merge(0.02_r8, 3.0e-5_r8, gamma < 1.0_r8), &
                             'Coulomb pressure')
        end do
    end subroutine one_component_plasma

end program test_limits
