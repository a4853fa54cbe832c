!> Tables of named values for HDF5 files.
module pw_hdf5_table
    use, intrinsic :: iso_c_binding, only: c_char, c_int32_t, c_loc, c_null_char, c_null_ptr, c_ptr
    use pw_hdf5_c, only: column_t, kind_double, kind_integer, kind_text
    use pw_kinds, only: i8, r8
    implicit none
    private

    integer, parameter :: max_columns = 16, max_name = 80

    !> A table to be written, column by column; the values must exist until it is written.
    type, public :: table_t
        integer :: n_columns = 0
        integer(i8) :: n_rows = 0
        character(max_name + 1, c_char), private :: name(max_columns) = c_null_char
        type(column_t), private :: column(max_columns)
    contains
        procedure :: columns
        procedure, private :: add_reals, add_integers, add_texts
        generic :: add => add_reals, add_integers, add_texts
    end type table_t

contains

    !> Columns for a table: reals, integers or texts; all columns of a table have the same number of rows.
    subroutine add_reals(self, name, values)
        class(table_t), intent(inout) :: self
        character(*), intent(in) :: name
        real(r8), contiguous, intent(in), target :: values(:)

        call add_column(self, name, kind_double, size(values, kind=i8), c_loc(values))
    end subroutine add_reals

    subroutine add_integers(self, name, values)
        class(table_t), intent(inout) :: self
        character(*), intent(in) :: name
        integer, contiguous, intent(in), target :: values(:)

        call add_column(self, name, kind_integer, size(values, kind=i8), c_loc(values))
    end subroutine add_integers

    subroutine add_texts(self, name, values)
        class(table_t), intent(inout) :: self
        character(*), intent(in) :: name
        character(*), contiguous, intent(in), target :: values(:)

        call add_column(self, name, kind_text(len(values)), size(values, kind=i8), c_loc(values))
    end subroutine add_texts

    subroutine add_column(self, name, kind, n_rows, values)
        class(table_t), intent(inout) :: self
        character(*), intent(in) :: name
        integer(c_int32_t), intent(in) :: kind
        integer(i8), intent(in) :: n_rows
        type(c_ptr), intent(in) :: values

        self%n_columns = self%n_columns + 1
        self%n_rows = n_rows
        self%name(self%n_columns) = name//c_null_char
        self%column(self%n_columns) = column_t(c_null_ptr, values, kind)
    end subroutine add_column

    !> The columns for C.
    function columns(self)
        class(table_t), intent(in), target :: self
        type(column_t) :: columns(self%n_columns)
        integer :: c

        columns = self%column(:self%n_columns)
        do c = 1, self%n_columns
            columns(c)%name = c_loc(self%name(c))
        end do
    end function columns

end module pw_hdf5_table
