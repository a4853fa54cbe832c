!> Both layouts of the table: what comes from the same numbers in both agrees to rounding in every mode; dp/drho and eta, of which
!> only the separate arrays have tables, agree within the error of interpolation. A zone's result does not depend on its row.
program test_layouts
    use helmholtz, only: helmholtz_t, table_arrays
    use helmholtz_columns, only: c_abar, c_cp, c_cs, c_dedt, c_dens, c_dpda, c_dpdd, c_dpdt, c_dpdz, c_dsdt, c_eint, c_entr, &
        c_eta, c_gam1, c_gam2, c_nabla, c_pres, c_temp, c_zbar, given_energy, given_entropy, given_temperature, n_columns
    use helmholtz_testing, only: expect, failures, load, random_states
    use pw_error, only: error_t
    use pw_kinds, only: r8
    use pw_text, only: to_text
    implicit none
    integer, parameter :: n = 10000, given(4) = [c_temp, c_eint, c_pres, c_entr], slope(4) = [c_temp, c_dedt, c_dpdt, c_dsdt]
    !> What depends on dp/drho, and eta.
    integer, parameter :: interpolated(9) = [c_dpdd, c_dpda, c_dpdz, c_gam1, c_cs, c_cp, c_gam2, c_nabla, c_eta]
    integer, parameter :: few_columns(6) = [c_temp, c_eint, c_pres, c_entr, c_gam1, c_cs]
    type(helmholtz_t) :: nodes, arrays
    type(error_t) :: error
    real(r8), allocatable :: state(:, :), other(:, :)

    allocate (state(n, n_columns), other(n, n_columns))
    call load(nodes, .true.)
    arrays%layout = table_arrays
    call load(arrays, .true.)
    call random_states(nodes, 0.01_r8, state)
    other = state
    call complete(nodes, given_temperature, state)
    call complete(arrays, given_temperature, other)
    call shared_columns()
    call interpolated_columns()
    call temperatures()
    call groups()
    if (failures > 0) error stop 'the layouts of the table differ'

contains

    subroutine complete(eos, mode, state, few)
        type(helmholtz_t), intent(in) :: eos
        integer, intent(in) :: mode
        real(r8), intent(inout), contiguous :: state(:, :)
        logical, intent(in), optional :: few

        call eos%rows(mode, size(state, 1), state, error, few)
        if (error%failed()) print *, error%message
        if (error%failed()) error stop 'a good row fails'
    end subroutine complete

    subroutine shared_columns()
        real(r8), parameter :: rounding = 1.0e-11_r8
        integer :: c, bad

        do c = 1, n_columns
            if (any(interpolated == c)) cycle
            bad = count(.not. abs(other(:, c) - state(:, c)) <= rounding*abs(state(:, c)))
            call expect(bad == 0, to_text(bad)//' values differ in column '//to_text(c))
        end do
    end subroutine shared_columns

    !> dp/drho in parts of p/rho, or of itself where it is larger, and eta; each of most zones, and of all. The largest errors are
    !> where pairs set in within a cell.
    subroutine interpolated_columns()
        real(r8) :: off(n)

        off = abs(other(:, c_dpdd) - state(:, c_dpdd))/max(state(:, c_dpdd), state(:, c_pres)/state(:, c_dens))
        call expect(count(.not. off < 1.0e-7_r8) < n/10 .and. all(off < 2.0e-4_r8), 'dp/drho differs')
        off = abs(other(:, c_gam1)/state(:, c_gam1) - 1.0_r8)
        call expect(count(.not. off < 1.0e-7_r8) < n/10 .and. all(off < 2.0e-4_r8), 'gamma_1 differs')
        off = abs(other(:, c_eta) - state(:, c_eta))/max(1.0_r8, abs(state(:, c_eta)))
        call expect(count(.not. off < 2.0e-6_r8) < n/10 .and. all(off < 0.1_r8), 'eta differs')
        call expect(any(abs(other(:, c_eta) - state(:, c_eta)) > 0.0_r8), 'eta is not from its own arrays')
    end subroutine interpolated_columns

    !> Those that are searched for, to rounding or what the problem's condition number allows.
    subroutine temperatures()
        real(r8), parameter :: tolerance = 1.0e-12_r8, rounding = 30.0_r8*epsilon(1.0_r8)
        real(r8) :: kappa(n), temp(n, 2)
        integer :: mode, bad

        do mode = given_energy, given_entropy
            call search(nodes, mode, temp(:, 1))
            call search(arrays, mode, temp(:, 2))
            kappa = abs(state(:, given(mode))/(state(:, c_temp)*state(:, slope(mode))))
            bad = count(.not. abs(temp(:, 2)/temp(:, 1) - 1.0_r8) <= tolerance + rounding*kappa)
            call expect(bad == 0, to_text(bad)//' temperatures differ in mode '//to_text(mode))
        end do
    end subroutine temperatures

    subroutine search(eos, mode, temp)
        type(helmholtz_t), intent(in) :: eos
        integer, intent(in) :: mode
        real(r8), intent(out) :: temp(:)

        other(:, c_temp) = 1.01_r8*state(:, c_temp)
        other(:, given(mode)) = state(:, given(mode))
        call complete(eos, mode, other, few=.true.)
        temp = other(:, c_temp)
    end subroutine search

    !> From separate arrays, 5 zones at a time: the same bits as all together, and `few` completes the same columns.
    subroutine groups()
        integer, parameter :: m = 333, length = 5
        real(r8) :: whole(m, n_columns), few(m, n_columns), row(length, n_columns)
        integer :: mode, first, last

        do mode = given_temperature, given_entropy
            whole = 0.0_r8
            whole(:, [c_dens, c_abar, c_zbar, given(mode)]) = state(:m, [c_dens, c_abar, c_zbar, given(mode)])
            few = whole
            call complete(arrays, mode, whole)
            call complete(arrays, mode, few, few=.true.)
            call expect(all(abs(few(:, few_columns)/whole(:, few_columns) - 1.0_r8) <= 1.0e-11_r8), 'few columns differ')
            do first = 1, m, length
                last = min(m, first + length - 1)
                row = 0.0_r8
                row(:last - first + 1, [c_dens, c_abar, c_zbar, given(mode)]) = &
                    whole(first:last, [c_dens, c_abar, c_zbar, given(mode)])
                call complete(arrays, mode, row(:last - first + 1, :))
                call expect(all(abs(row(:last - first + 1, :) - whole(first:last, :)) <= 0.0_r8), &
                            'a zone depends on its row in mode '//to_text(mode))
            end do
        end do
    end subroutine groups

end program test_layouts
