!> The gamma law: from pressure to energy and back, and the error names a zone without a state.
program test_eos
    use ember_eos, only: cgs_gas_constant, gamma_law_t
    use pw_error, only: error_t, exit_check
    use pw_kinds, only: r8
    implicit none
    integer, parameter :: n = 19
    type(gamma_law_t) :: gas
    type(error_t) :: error
    real(r8) :: dens(n), eint(n), temp(n), pres(n), gamc(n), none(n, 0)
    integer :: i

    gas = gamma_law_t(gamma=5.0_r8/3.0_r8, weight=0.5_r8)
    dens = [(0.1_r8*i, i=1, n)]
    ! The energy of a temperature of 1000 i.
    eint = [(1.5_r8*cgs_gas_constant/0.5_r8*1000.0_r8*i, i=1, n)]
    temp = 0.0_r8
    call gas%rows(n, dens, none, eint, temp, pres, gamc, error)
    if (error%failed()) error stop 'a good row fails'
    if (any(abs(temp/[(1000.0_r8*i, i=1, n)] - 1.0_r8) > 1.0e-14_r8)) error stop 'temperature'
    if (any(abs(pres/(dens*cgs_gas_constant/0.5_r8*temp) - 1.0_r8) > 1.0e-14_r8)) error stop 'pressure'
    if (any(abs(gamc - 5.0_r8/3.0_r8) > 0.0_r8)) error stop 'adiabatic index'
    if (.not. gas%is_simple()) error stop 'not simple'

    dens(7) = -dens(7)
    call gas%rows(n, dens, none, eint, temp, pres, gamc, error)
    call named('zone 7 of')
    dens(7) = 1.0_r8
    eint(19) = 0.0_r8
    call gas%rows(n, dens, none, eint, temp, pres, gamc, error)
    call named('zone 19 of')
    eint(19) = 1.0_r8
    eint(2) = sqrt(-abs(temp(1)))
    call gas%rows(n, dens, none, eint, temp, pres, gamc, error)
    call named('zone 2 of')

contains

    subroutine named(zone)
        character(*), intent(in) :: zone

        if (error%code /= exit_check) error stop 'a bad row is accepted'
        if (index(error%message, zone) == 0) error stop 'another zone is named'
        error = error_t()
    end subroutine named

end program test_eos
