!> HDF5 files from Fortran: rows of datasets, tables of named values, attributes (pw_hdf5.h describes each call).
!>
!> The first failure stays in `error`, and later calls do nothing: a caller checks at the end. Shapes are
!> Fortran's, so that a row of a dataset is everything with the same last index.
module pw_hdf5
    use, intrinsic :: iso_c_binding, only: c_associated, c_bool, c_char, c_int32_t, c_int64_t, c_loc, c_null_char, &
        c_null_ptr, c_ptr
    use pw_error, only: error_t
    use pw_hdf5_h, only: column_t, max_name => pw_hdf5_max_name, max_rank => pw_hdf5_max_rank, &
        pw_hdf5_attribute, pw_hdf5_attribute_size, pw_hdf5_commit, pw_hdf5_define, pw_hdf5_open, pw_hdf5_release, &
        pw_hdf5_reserve, pw_hdf5_rows, pw_hdf5_shape, pw_hdf5_table, text_bytes => pw_hdf5_text
    use pw_kinds, only: i8, r8
    use pw_text, only: from_c
    implicit none
    private

    public :: kind_text

    character(*), parameter, public :: whole_file = '/'   !< the object whose attributes are the file's

    !> Kinds of values, those of pw_hdf5.h; `kind_text(length)` is that of texts.
    integer(c_int32_t), parameter, public :: kind_double = 1, kind_float = 2, kind_integer = 3

    character(*), parameter :: nul = c_null_char

    !> An open file.
    type, public :: file_t
        private
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure :: create
        procedure :: open => open_file
        procedure :: define
        procedure :: reserve
        procedure :: commit
        procedure :: discard => release
        procedure :: close => release
        procedure :: shape => dataset_shape
        procedure :: write_table
        procedure :: attribute_size
        procedure :: has_attribute
        ! (name, first, n, row_values, values, error): n rows of row_values values from row `first` on, counted from 1.
        procedure :: write_reals, write_integers, write_texts
        procedure :: read_reals, read_integers, read_texts
        procedure, private :: put_real, put_integer, put_any_text, put_reals, put_integers, put_texts
        procedure, private :: get_real, get_integer, get_any_text, get_reals, get_integers, get_texts
        !> call put(object, name, value, error): an attribute of a dataset, or of the file; a single value or values(:).
        generic :: put => put_real, put_integer, put_any_text, put_reals, put_integers, put_texts
        generic :: get => get_real, get_integer, get_any_text, get_reals, get_integers, get_texts
    end type file_t

    !> A column of a table: column_t(name, values), one value per row; the values must exist until it is written.
    public :: column_t

    interface column_t
        module procedure :: real_column, integer_column, text_column
    end interface column_t

    character(kind=c_char), bind(c, name='pw_hdf5_message') :: c_message(text_bytes)
    character(kind=c_char), bind(c, name='pw_hdf5_remedy') :: c_remedy(text_bytes)

contains

    !> Begin to write the file `path`. In any case end it with `commit`, or abandon it with `discard`.
    subroutine create(self, path, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: path
        type(error_t), intent(inout) :: error

        if (.not. error%failed()) call check(pw_hdf5_open(path//nul, .true._c_bool, self%handle), error)
    end subroutine create

    !> Open the file `path` to read it; end with `close`.
    subroutine open_file(self, path, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: path
        type(error_t), intent(inout) :: error

        if (.not. error%failed()) call check(pw_hdf5_open(path//nul, .false._c_bool, self%handle), error)
    end subroutine open_file

    !> End a file that was written: it is on the disk under its final name, or there is an error and the file is removed.
    subroutine commit(self, error)
        class(file_t), intent(inout) :: self
        type(error_t), intent(inout) :: error

        if (error%failed()) then
            call self%discard()
        else
            call check(pw_hdf5_commit(self%handle), error)
        end if
    end subroutine commit

    !> Close a file that was read, or discard one that is being written.
    subroutine release(self)
        class(file_t), intent(inout) :: self

        if (c_associated(self%handle)) call pw_hdf5_release(self%handle)
    end subroutine release

    !> Make the file system reserve the space of all that is defined.
    subroutine reserve(self, error)
        class(file_t), intent(inout) :: self
        type(error_t), intent(inout) :: error

        if (.not. error%failed()) call check(pw_hdf5_reserve(self%handle), error)
    end subroutine reserve

    !> A dataset of values of `kind`, of that `shape`; its rows are written later.
    subroutine define(self, name, kind, shape, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: name
        integer(c_int32_t), intent(in) :: kind
        integer, intent(in) :: shape(:)
        type(error_t), intent(inout) :: error

        if (error%failed()) return
        call check(pw_hdf5_define(self%handle, name//nul, kind, size(shape, kind=c_int32_t), &
                            int(shape(size(shape):1:-1), c_int64_t)), error)
    end subroutine define

    !> The shape of a dataset; without elements after an error.
    subroutine dataset_shape(self, name, shape, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: name
        integer(i8), allocatable, intent(out) :: shape(:)
        type(error_t), intent(inout) :: error
        integer(c_int32_t) :: rank
        integer(c_int64_t) :: extent(max_rank)

        rank = 0
        if (.not. error%failed()) call check(pw_hdf5_shape(self%handle, name//nul, rank, extent), error)
        shape = extent(rank:1:-1)
    end subroutine dataset_shape

    !> Write a table as the dataset `name`, unless it has no rows; all columns have the same number of rows.
    subroutine write_table(self, name, columns, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: name
        type(column_t), intent(in) :: columns(:)
        type(error_t), intent(inout) :: error

        if (error%failed() .or. columns(1)%n == 0) return
        call check(pw_hdf5_table(self%handle, name//nul, columns, size(columns, kind=c_int32_t)), error)
    end subroutine write_table

    !> The number of values of an attribute, and the length of its texts (0 if it has none); -1 values if it does not exist.
    subroutine attribute_size(self, object, name, n, length, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: object, name
        integer(i8), intent(out) :: n
        integer, intent(out) :: length
        type(error_t), intent(inout) :: error

        n = -1
        length = 0
        if (error%failed()) return
        call check(pw_hdf5_attribute_size(self%handle, object//nul, name//nul, n, length), error)
    end subroutine attribute_size

    !> Whether such an attribute exists.
    logical function has_attribute(self, object, name)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: object, name
        integer(i8) :: n
        integer :: length
        type(error_t) :: error

        call self%attribute_size(object, name, n, length, error)
        has_attribute = n >= 0
    end function has_attribute

    !> An empty text becomes one blank: HDF5 does not support length 0.
    subroutine put_any_text(self, object, name, value, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: object, name, value
        type(error_t), intent(inout) :: error
        character(max(1, len(value))) :: text

        text = value
        call put_text(self, object, name, text, error)
    end subroutine put_any_text

    subroutine get_any_text(self, object, name, value, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: object, name
        character(:), allocatable, intent(inout) :: value
        type(error_t), intent(inout) :: error
        integer(i8) :: n
        integer :: length

        call self%attribute_size(object, name, n, length, error)
        if (error%failed()) return
        value = repeat(' ', max(1, length))
        call get_text(self, object, name, value, error)
        value = trim(value)
    end subroutine get_any_text

    function real_column(name, values) result(column)
        character(*), intent(in) :: name
        real(r8), contiguous, intent(in), target :: values(:)
        type(column_t) :: column

        column = column_t(c_name(name), c_loc(values), size(values, kind=i8), kind_double)
    end function real_column

    function integer_column(name, values) result(column)
        character(*), intent(in) :: name
        integer, contiguous, intent(in), target :: values(:)
        type(column_t) :: column

        column = column_t(c_name(name), c_loc(values), size(values, kind=i8), kind_integer)
    end function integer_column

    function text_column(name, values) result(column)
        character(*), intent(in) :: name
        character(*), contiguous, intent(in), target :: values(:)
        type(column_t) :: column

        column = column_t(c_name(name), c_loc(values), size(values, kind=i8), kind_text(len(values)))
    end function text_column

    pure function c_name(name)
        character(*), intent(in) :: name
        character(kind=c_char) :: c_name(max_name + 1)
        integer :: i

        c_name = nul
        do i = 1, min(len(name), int(max_name))
            c_name(i) = name(i:i)
        end do
    end function c_name

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

    ! For each type of values: put_, get_, write_ and read_, from values.f90.in.
    include 'values.f90'

end module pw_hdf5
