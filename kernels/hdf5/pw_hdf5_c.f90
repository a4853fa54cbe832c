!> The C functions of this folder, declared for Fortran. file.c and content.c describe them.
module pw_hdf5_c
    use, intrinsic :: iso_c_binding, only: c_char, c_int32_t, c_int64_t, c_null_ptr, c_ptr
    use pw_error, only: error_t
    use pw_text, only: from_c
    implicit none
    private

    public :: c_attribute, c_attribute_size, c_commit, c_create, c_define, c_open, c_release, c_reserve, c_rows, c_shape, c_table
    public :: check

    !> Kinds of values, those of content.c; `kind_text(length)` is that of texts.
    integer(c_int32_t), parameter, public :: kind_double = 1, kind_float = 2, kind_integer = 3, kind_long = 4
    public :: kind_text

    integer, parameter :: text_bytes = 8192         ! PW_HDF5_TEXT
    integer, parameter, public :: max_rank = 8      ! MAX_RANK

    !> A column of a table.
    type, public, bind(c) :: column_t
        type(c_ptr) :: name = c_null_ptr, values = c_null_ptr
        integer(c_int32_t) :: kind = 0
    end type column_t

    character(kind=c_char), bind(c, name='pw_hdf5_message') :: c_message(text_bytes)
    character(kind=c_char), bind(c, name='pw_hdf5_remedy') :: c_remedy(text_bytes)

    interface
        integer(c_int32_t) function c_create(path, file) bind(c, name='pw_hdf5_create')
            import :: c_char, c_int32_t, c_ptr
            character(kind=c_char), intent(in) :: path(*)
            type(c_ptr), intent(out) :: file
        end function c_create

        integer(c_int32_t) function c_open(path, file) bind(c, name='pw_hdf5_open')
            import :: c_char, c_int32_t, c_ptr
            character(kind=c_char), intent(in) :: path(*)
            type(c_ptr), intent(out) :: file
        end function c_open

        integer(c_int32_t) function c_commit(file) bind(c, name='pw_hdf5_commit')
            import :: c_int32_t, c_ptr
            type(c_ptr), intent(inout) :: file
        end function c_commit

        subroutine c_release(file) bind(c, name='pw_hdf5_release')
            import :: c_ptr
            type(c_ptr), intent(inout) :: file
        end subroutine c_release

        integer(c_int32_t) function c_reserve(file) bind(c, name='pw_hdf5_reserve')
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: file
        end function c_reserve

        integer(c_int32_t) function c_define(file, name, kind, rank, shape) bind(c, name='pw_hdf5_define')
            import :: c_char, c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: file
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int32_t), value :: kind, rank
            integer(c_int64_t), intent(in) :: shape(*)
        end function c_define

        integer(c_int32_t) function c_shape(file, name, rank, shape) bind(c, name='pw_hdf5_shape')
            import :: c_char, c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: file
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int32_t), intent(out) :: rank
            integer(c_int64_t), intent(inout) :: shape(*)
        end function c_shape

        integer(c_int32_t) function c_rows(file, name, kind, first, n, row_values, values) bind(c, name='pw_hdf5_rows')
            import :: c_char, c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: file
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int32_t), value :: kind
            integer(c_int64_t), value :: first, n, row_values
            type(c_ptr), value :: values
        end function c_rows

        integer(c_int32_t) function c_attribute(file, object, name, kind, n, values) bind(c, name='pw_hdf5_attribute')
            import :: c_char, c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: file
            character(kind=c_char), intent(in) :: object(*), name(*)
            integer(c_int32_t), value :: kind
            integer(c_int64_t), value :: n
            type(c_ptr), value :: values
        end function c_attribute

        integer(c_int32_t) function c_attribute_size(file, object, name, n, length) bind(c, name='pw_hdf5_attribute_size')
            import :: c_char, c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: file
            character(kind=c_char), intent(in) :: object(*), name(*)
            integer(c_int64_t), intent(out) :: n
            integer(c_int32_t), intent(out) :: length
        end function c_attribute_size

        integer(c_int32_t) function c_table(file, name, n, columns, n_columns) bind(c, name='pw_hdf5_table')
            import :: c_char, c_int32_t, c_int64_t, c_ptr, column_t
            type(c_ptr), value :: file
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int64_t), value :: n
            type(column_t), intent(in) :: columns(*)
            integer(c_int32_t), value :: n_columns
        end function c_table
    end interface

contains

    !> The kind of texts of this length.
    pure integer(c_int32_t) function kind_text(length)
        integer, intent(in) :: length

        kind_text = -int(length, c_int32_t)
    end function kind_text

    !> Convert the result of a call to an error.
    subroutine check(code, error)
        integer(c_int32_t), intent(in) :: code
        type(error_t), intent(inout) :: error

        if (code /= 0) call error%raise(int(code), from_c(c_message), 'pw_hdf5', from_c(c_remedy))
    end subroutine check

end module pw_hdf5_c
