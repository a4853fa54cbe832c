!> A white dwarf is in balance, for comparison by another integration: prints mass and radius, then the pressure over a
!> range of densities, then radius and density through the star.
!>
!> Arguments: central density [g/cm^3] and temperature [K]; without arguments, an internal check.
program test_white_dwarf
    use ember_helmholtz_eos, only: helmholtz_eos_t
    use ember_nuclei, only: charge, mass_number
    use ember_white_dwarf, only: white_dwarf_t
    use helmholtz_table_path, only: default_table
    use pw_error, only: error_t, exit_check
    use pw_kinds, only: r8
    use pw_pages, only: pages_begin, pages_none
    implicit none
    integer, parameter :: n = 1001
    real(r8), parameter :: sun = 1.98841e33_r8, ambient = 1.0e3_r8
    type(helmholtz_eos_t) :: eos
    type(white_dwarf_t) :: star, small, none
    type(error_t) :: error
    real(r8) :: central, temperature
    real(r8), dimension(n) :: dens, temp, eint, pres, gamc, warm
    real(r8) :: fuel(n, 2)
    character(32) :: word
    integer :: i

    central = 2.2e9_r8
    temperature = 5.0e7_r8
    if (command_argument_count() == 2) then
        call get_command_argument(1, word)
        read (word, *) central
        call get_command_argument(2, word)
        read (word, *) temperature
    end if
    call pages_begin(pages_none, error)
    if (.not. error%failed()) call eos%start(default_table(), pages_none, mass_number, charge, 1.0e7_r8, error)
    if (.not. error%failed()) call star%start(eos, [1.0_r8, 0.0_r8], central, temperature, ambient, error)
    call stop_on_error()
    dens = [(ambient*(central/ambient)**((i - 1.0_r8)/(n - 1)), i=1, n)]
    temp = temperature
    fuel(:, 1) = 1.0_r8
    fuel(:, 2) = 0.0_r8
    call eos%at_temperature(n, dens, fuel, temp, eint, pres, gamc, error)
    call stop_on_error()
    if (command_argument_count() == 2) then
        print '(2es24.15)', star%mass, star%radius
        print '(2es24.15)', (dens(i), pres(i), i=1, n)
        print '(2es24.15)', (star%radius*i/n, star%density(star%radius*i/n), i=0, n - 1)
        stop
    end if

    ! Below Chandrasekhar's 5.836 Ye^2, minus the effects of the Coulomb forces and the finite central density.
    if (star%mass < 1.36_r8*sun .or. star%mass > 1.459_r8*sun) error stop 'mass'
    if (star%radius < 1.5e8_r8 .or. star%radius > 2.5e8_r8) error stop 'radius'
    call small%start(eos, [1.0_r8, 0.0_r8], 1.0e7_r8, temperature, ambient, error)
    call stop_on_error()
    if (.not. (small%mass < star%mass .and. small%radius > star%radius)) error stop 'lighter stars are larger'
    if (abs(star%density(0.0_r8) - central) > 1.0e-12_r8*central) error stop 'centre'
    if (abs(star%density(2.0_r8*star%radius) - ambient) > 0.0_r8) error stop 'outside'

    ! From the energy back; and matter that is too cold gets the lowest temperature.
    warm = eint
    call eos%rows(n, dens, fuel, warm, temp, pres, gamc, error)
    call stop_on_error()
    if (any(abs(temp/temperature - 1.0_r8) > 1.0e-6_r8) .or. any(abs(warm - eint) > 0.0_r8)) error stop 'there and back'
    warm = 0.05_r8*eint
    call eos%rows(n, dens, fuel, warm, temp, pres, gamc, error)
    call stop_on_error()
    if (any(warm <= 0.05_r8*eint) .or. any(warm > eint)) error stop 'not raised'
    if (any(temp < 0.7e7_r8) .or. any(temp > 1.4e7_r8)) error stop 'colder or warmer than the lowest temperature'

    dens(7) = -1.0_r8
    call eos%rows(n, dens, fuel, eint, temp, pres, gamc, error)
    if (error%code /= exit_check .or. index(error%message, '7') == 0) error stop 'a density below zero is accepted, or not named'
    error = error_t()
    call none%start(eos, [1.0_r8, 0.0_r8], 1.0e6_r8, 8.0e8_r8, 1.0e-5_r8, error)
    if (.not. error%failed()) error stop 'a star without a surface'

contains

    subroutine stop_on_error()
        if (.not. error%failed()) return
        print '(a)', error%message
        error stop 'test_white_dwarf'
    end subroutine stop_on_error

end program test_white_dwarf
