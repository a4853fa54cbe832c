!> Shared by the tests of the equation of state: the table, expectations, reproducible random states.
module helmholtz_testing
    use helmholtz, only: helmholtz_t
    use helmholtz_columns, only: c_abar, c_dens, c_temp, c_zbar
    use helmholtz_points, only: point, points_plane
    use helmholtz_table_path, only: default_table
    use mini_expectations, only: expect, failures
    use pw_error, only: error_t
    use pw_kinds, only: i8, r8
    use pw_pages, only: pages_begin, pages_none
    use pw_text, only: to_text
    implicit none
    private

    public :: expect, failures, expect_near, load, table_path, random_states, range_of

contains

    !> The table's file: that of the first argument of the command line, or the build's.
    function table_path() result(path)
        character(:), allocatable :: path
        character(1024) :: argument

        call get_command_argument(1, argument)
        path = trim(argument)
        if (len(path) == 0) path = default_table()
    end function table_path

    !> Load the table.
    subroutine load(eos, coulomb)
        type(helmholtz_t), intent(inout) :: eos
        logical, intent(in) :: coulomb
        type(error_t) :: error

        call pages_begin(pages_none, error)
        eos%coulomb = coulomb
        call eos%load(table_path(), pages_none, error)
        if (.not. error%failed()) return
        print *, error%message
        error stop 'no table'
    end subroutine load

    !> Expect a number up to a relative difference of `tolerance`.
    subroutine expect_near(value, wanted, tolerance, label)
        real(r8), intent(in) :: value, wanted, tolerance
        character(*), intent(in) :: label

        call expect(abs(value - wanted) <= tolerance*abs(wanted), label//': '//to_text(value, 'es24.16e3')//' is not '// &
                    to_text(wanted, 'es24.16e3')//', off by '//to_text(value/wanted - 1.0_r8, 'es10.2e3'))
    end subroutine expect_near

    pure function range_of(eos) result(range)
        type(helmholtz_t), intent(in) :: eos
        real(r8) :: range(4)

        range = [eos%least_density, eos%most_density, eos%least_temperature, eos%most_temperature]
    end function range_of

    !> Random densities and temperatures over the table, carbon and oxygen; at least `inside` (relative) from its edges.
    subroutine random_states(eos, inside, state)
        type(helmholtz_t), intent(in) :: eos
        real(r8), intent(in) :: inside
        real(r8), intent(out) :: state(:, :)
        real(r8) :: range(4)
        integer :: i

        range = range_of(eos)*[1.0_r8 + inside, 1.0_r8 - inside, 1.0_r8 + inside, 1.0_r8 - inside]
        state = 0.0_r8
        do i = 1, size(state, 1)
            call point(points_plane, int(i, i8), range, state(i, c_dens), state(i, c_temp), state(i, c_abar), state(i, c_zbar))
        end do
    end subroutine random_states

end module helmholtz_testing
