!> The model flame on rows: diffusion conserves ash and its energy between zones; reaction stays between 0 and 1;
!> speeds are those of the fits; and the energy of carbon and oxygen.
program test_flame
    use ember_flame, only: flame_t
    use ember_godunov, only: row_first, row_last
    use ember_mesh, only: first_guard, last_guard, n_conserved, v_ener
    use ember_nuclei, only: carbon_to_nickel, charge, mass_number
    use ember_testing, only: expect, failures, next_random
    use pw_kinds, only: r8
    use pw_text, only: to_text
    implicit none
    type(flame_t) :: flame

    flame%on = .true.
    flame%release = 3.0_r8
    flame%speed = 0.2_r8
    flame%zone = 0.25_r8
    call diffusion()
    call reaction()
    call speeds()
    call fronts()
    ! Binding energies of 92.1617, 127.6193 and 483.99 MeV per nucleus; 1 MeV/u = 9.6485e17 erg/g.
    call near(carbon_to_nickel, 9.64853e17_r8*(483.995_r8/56 - 0.5_r8*(92.1617_r8/12 + 127.6193_r8/16)), 1.0e-4_r8, 'release')
    call near(charge(1)/mass_number(1), 0.5_r8, 1.0e-15_r8, 'electrons of fuel')
    call near(mass_number(1), 96.0_r8/7.0_r8, 1.0e-15_r8, 'mass number of fuel')
    if (failures > 0) error stop 'test_flame: failures'

contains

    subroutine diffusion()
        real(r8) :: fraction(row_first:row_last, 2), rate(row_first:row_last)
        real(r8) :: flux(row_first:row_last, n_conserved + 2), expected
        integer :: i

        do i = row_first, row_last
            rate(i) = 0.2_r8*(next_random() + 0.5_r8)
            fraction(i, 2) = next_random()
        end do
        fraction(:, 1) = 1.0_r8 - fraction(:, 2)
        flux = 0.0_r8
        call flame%diffuse(1, 0.5_r8, fraction, fraction, 0.5_r8*(rate(0:16) + rate(1:17)), flux)
        do i = 0, 16
            ! - rho kappa d(phi)/dx with kappa = s b d/16, b = 4.
            expected = -0.5_r8*(rate(i) + rate(i + 1))*4.0_r8*0.25_r8/16.0_r8*(fraction(i + 1, 2) - fraction(i, 2))/0.5_r8
            call near(flux(i, n_conserved + 2), expected, 1.0e-14_r8, 'flux of ash')
        end do
        call expect(all(abs(sum(flux(:, n_conserved + 1:), dim=2)) <= 0.0_r8), 'mass does not diffuse')
        call expect(all(abs(flux(:, v_ener) - 3.0_r8*flux(:, n_conserved + 2)) <= 1.0e-15_r8), 'energy goes with the ash')
        call expect(all(abs(flux(:, :v_ener - 1)) <= 0.0_r8), 'nothing else does')
    end subroutine diffusion

    subroutine reaction()
        real(r8) :: phi, burnt
        integer :: i

        do i = 0, 1000
            phi = i/1000.0_r8
            burnt = flame%react(0.05_r8, 2.0_r8, 2.0_r8*phi, 0.4_r8)
            call expect(phi + 0.5_r8*burnt >= 0.0_r8 .and. phi + 0.5_r8*burnt <= 1.0_r8, 'between 0 and 1')
            call expect(burnt > 0.0_r8 .eqv. phi > 1.0e-3_r8 .and. phi < 1.0_r8, 'ash grows from 1e-3 on: '//to_text(phi, 'f6.3'))
        end do
        ! 16 s/(b d) f/4 phi (1 - phi), approximately.
        call near(flame%react(0.01_r8, 1.0_r8, 0.5_r8, 0.2_r8), 0.01_r8*3.2_r8*1.309_r8/4*0.499_r8*0.501_r8, 1.0e-12_r8, 'half')
        call near(flame%react(1.0e3_r8, 2.0_r8, 1.5_r8, 0.2_r8), 0.5_r8, 1.0e-15_r8, 'no more than the fuel')
        call near(flame%react(1.0e6_r8, 2.0_r8, 1.0e-4_r8, 0.2_r8), -1.0e-4_r8, 1.0e-15_r8, 'no more than the ash')
        call expect(abs(flame%react(1.0_r8, 2.0_r8, 1.0_r8, 0.0_r8)) <= 0.0_r8, 'quenched')
    end subroutine reaction

    subroutine speeds()
        type(flame_t) :: carbon
        real(r8) :: dens(row_first:row_last), fraction(row_first:row_last, 2), pull(row_first:row_last, 2)
        real(r8) :: rate(row_first:row_last)

        carbon%on = .true.
        carbon%quench = 1.0e7_r8
        carbon%zone = 8.0e5_r8
        carbon%first_log = log(1.0e6_r8)
        carbon%step_log = log(10.0_r8)
        carbon%atwood = [0.5_r8, 0.4_r8, 0.2_r8, 0.2_r8, 0.1_r8]
        fraction = 0.0_r8
        pull = 0.0_r8
        dens = 2.0e9_r8
        dens(1) = 0.99e7_r8
        dens(2) = 1.0e8_r8
        dens(3) = 1.0e8_r8
        pull(3, :) = [3.0e9_r8, -4.0e9_r8]
        ! Of ash alone, at the pressure of fuel of 1e9 g/cm^3, with A = 0.2.
        dens(4) = 1.0e9_r8*0.8_r8/1.2_r8
        fraction(4, 2) = 1.0_r8
        call carbon%burning(dens, fraction, pull, rate)
        call expect(abs(rate(1)) <= 0.0_r8, 'quenched')
        call near(rate(2)/1.0e8_r8, 92.0e5_r8*0.05_r8**0.805_r8, 1.0e-12_r8, 'laminar')
        call near(rate(3)/1.0e8_r8, 0.5_r8*sqrt(0.2_r8*5.0e9_r8*0.04_r8*8.0e5_r8), 1.0e-12_r8, 'buoyant')
        call near(rate(4)/1.0e9_r8, 92.0e5_r8*0.5_r8**0.805_r8, 0.02_r8, 'of the fuel ahead')
        call near(rate(5)/2.0e9_r8, 92.0e5_r8, 1.0e-12_r8, 'where it is measured')
        call flame%burning(dens, fraction, pull, rate)
        call expect(all(abs(rate(first_guard:last_guard)/dens(first_guard:last_guard) - 0.2_r8) <= 1.0e-15_r8), 'constant')
    end subroutine speeds

    subroutine fronts()
        real(r8) :: fraction(row_first:row_last, 2, first_guard:last_guard)

        fraction = 0.0_r8
        call expect(.not. flame%burns(fraction), 'fuel')
        fraction(last_guard, 2, 3) = 0.5_r8
        call expect(.not. flame%burns(fraction), 'a front two zones away')
        fraction(last_guard - 1, 2, 3) = 1.0_r8
        call expect(flame%burns(fraction), 'a front in the next zone')
        fraction(:, 2, :) = 1.0_r8
        call expect(.not. flame%burns(fraction), 'ash')
        fraction(4, 2, 4) = 0.9_r8
        call expect(flame%burns(fraction), 'nearly ash')
        flame%on = .false.
        call expect(.not. flame%burns(fraction), 'no flame')
    end subroutine fronts

    subroutine near(got, wanted, tolerance, label)
        real(r8), intent(in) :: got, wanted, tolerance
        character(*), intent(in) :: label

        call expect(abs(got - wanted) <= tolerance*abs(wanted), label//': '//to_text(got, 'es22.14')//', not '// &
                    to_text(wanted, 'es22.14'))
    end subroutine near

end program test_flame
