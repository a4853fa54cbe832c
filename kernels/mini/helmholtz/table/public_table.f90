!> The table in the format of the public routine of Timmes and Swesty (ApJS 126, 501, 2000), `helm_table.dat`, which Flash-X,
!> Castro, MAESTROeX and many other codes read: text in four parts, each with one line per point, the densities of the first
!> temperature, those of the second and so on:
!>     f, f_x, f_T, f_xx, f_TT, f_xT, f_xxT, f_xTT, f_xxTT of the whole free energy f(x, T) [erg/g], x = rho Ye;
!>     dP/dx, then eta, then the number density of electrons and positrons, each with d/dx, d/dT and d2/dxdT.
module eos_table_public
    use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int32_t, c_int64_t, c_null_char
    use eos_table, only: eos_table_t
    use eos_table_pair_plasma, only: n_functions, n_public_values
    use eos_table_terminal, only: interrupted
    use pw_error, only: error_t, exit_system
    use pw_kinds, only: i8, r8
    use pw_text, only: from_c
    implicit none
    private

    integer, parameter :: reason_bytes = 256, part_values = 4   ! of the parts after the first

    interface
        integer(c_int32_t) function c_create(path) bind(c, name='pw_text_file_create')
            import :: c_char, c_int32_t
            character(kind=c_char), intent(in) :: path(*)
        end function c_create

        integer(c_int32_t) function c_rows(n, row_values, values) bind(c, name='pw_text_file_rows')
            import :: c_double, c_int32_t, c_int64_t
            integer(c_int64_t), value :: n
            integer(c_int32_t), value :: row_values
            real(c_double), intent(in) :: values(*)
        end function c_rows

        integer(c_int32_t) function c_commit() bind(c, name='pw_text_file_commit')
            import :: c_int32_t
        end function c_commit

        subroutine discard_public_table() bind(c, name='pw_text_file_discard')
        end subroutine discard_public_table

        subroutine c_reason(cause, text, length) bind(c, name='pw_text_file_reason')
            import :: c_char, c_int32_t
            integer(c_int32_t), value :: cause, length
            character(kind=c_char), intent(out) :: text(*)
        end subroutine c_reason
    end interface

    public :: begin_public_table, end_public_table, discard_public_table

contains

    !> Create the file `path` before the work that would be lost without it. exit_system: it cannot be written.
    subroutine begin_public_table(path, error)
        character(*), intent(in) :: path
        type(error_t), intent(inout) :: error

        call check(c_create(path//c_null_char), path, error)
    end subroutine begin_public_table

    !> Write all and end the file. After an error or an interrupt it is removed.
    subroutine end_public_table(table, path, error)
        type(eos_table_t), intent(in) :: table
        character(*), intent(in) :: path
        type(error_t), intent(inout) :: error
        real(r8) :: rows(n_functions, table%n_dye)
        integer :: j, first

        do j = 1, table%n_temperature
            rows = table%thermal(:, j, :)
            ! f, f_x and f_xx also have a part without temperature.
            rows([1, 2, 4], :) = rows([1, 2, 4], :) + transpose(table%cold)
            call write_rows(rows)
        end do
        do first = 1, n_public_values, part_values
            do j = 1, table%n_temperature
                call write_rows(table%public_values(first:first + part_values - 1, j, :))
            end do
        end do
        if (interrupted()) call discard_public_table()
        if (.not. (interrupted() .or. error%failed())) call check(c_commit(), path, error)

    contains

        subroutine write_rows(values)
            real(r8), intent(in), contiguous :: values(:, :)

            if (.not. (interrupted() .or. error%failed())) &
                call check(c_rows(size(values, 2, i8), size(values, 1), values), path, error)
        end subroutine write_rows

    end subroutine end_public_table

    !> After an errno: raise it, and remove what was written.
    subroutine check(cause, path, error)
        integer(c_int32_t), intent(in) :: cause
        character(*), intent(in) :: path
        type(error_t), intent(inout) :: error
        character(kind=c_char) :: reason(reason_bytes)

        if (cause == 0) return
        call discard_public_table()
        call c_reason(cause, reason, reason_bytes)
        call error%raise(exit_system, "cannot write '"//path//"': "//from_c(reason), 'eos_table_public', &
                         'name a file in an existing, writable folder with enough free space (df) and size limit (ulimit -f)')
    end subroutine check

end module eos_table_public
