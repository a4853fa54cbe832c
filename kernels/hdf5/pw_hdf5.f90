!> HDF5 files from Fortran: rows of datasets, tables of named values, attributes (file.c and content.c describe each call).
!>
!> The first failure stays in `error`, and later calls do nothing: a caller checks at the end. Shapes are
!> Fortran's, so that a row of a dataset is everything with the same last index.
module pw_hdf5
    use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_int32_t, c_int64_t, c_loc, c_null_char, c_null_ptr, c_ptr
    use pw_error, only: error_t
    use pw_hdf5_c, only: c_attribute, c_attribute_size, c_commit, c_create, c_define, c_open, c_release, c_reserve, c_rows, &
        c_shape, c_table, check, kind_double, kind_float, kind_integer, kind_long, kind_text, max_rank
    use pw_hdf5_table, only: table_t
    use pw_kinds, only: i8, r8
    implicit none
    private

    public :: kind_double, kind_float, kind_integer, kind_text, table_t

    character(*), parameter, public :: whole_file = '/'   !< the object whose attributes are the file's

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
        procedure :: write_reals
        procedure :: write_integers
        procedure :: write_texts
        procedure :: read_reals
        procedure :: read_integers
        procedure, private :: put_real, put_integer, put_text, put_reals, put_integers, put_longs, put_texts
        !> call put(object, name, value, error): an attribute of a dataset, or of the file; a single value or values(:).
        generic :: put => put_real, put_integer, put_text, put_reals, put_integers, put_longs, put_texts
        procedure, private :: get_real, get_integer, get_text, get_reals, get_integers, get_longs, get_texts
        generic :: get => get_real, get_integer, get_text, get_reals, get_integers, get_longs, get_texts
    end type file_t

contains

    !> Begin to write the file `path`. In any case end it with `commit`, or abandon it with `discard`.
    subroutine create(self, path, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: path
        type(error_t), intent(inout) :: error

        if (.not. error%failed()) call check(c_create(path//nul, self%handle), error)
    end subroutine create

    !> Open the file `path` to read it; end with `close`.
    subroutine open_file(self, path, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: path
        type(error_t), intent(inout) :: error

        if (.not. error%failed()) call check(c_open(path//nul, self%handle), error)
    end subroutine open_file

    !> End a file that was written: it is on the disk under its final name, or there is an error and the file is removed.
    subroutine commit(self, error)
        class(file_t), intent(inout) :: self
        type(error_t), intent(inout) :: error

        if (error%failed()) then
            call self%discard()
        else
            call check(c_commit(self%handle), error)
        end if
    end subroutine commit

    !> Close a file that was read, or discard one that is being written.
    subroutine release(self)
        class(file_t), intent(inout) :: self

        if (c_associated(self%handle)) call c_release(self%handle)
    end subroutine release

    !> Make the file system reserve the space of all that is defined.
    subroutine reserve(self, error)
        class(file_t), intent(inout) :: self
        type(error_t), intent(inout) :: error

        if (.not. error%failed()) call check(c_reserve(self%handle), error)
    end subroutine reserve

    !> A dataset of values of `kind`, of that `shape`; its rows are written later.
    subroutine define(self, name, kind, shape, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: name
        integer(c_int32_t), intent(in) :: kind
        integer, intent(in) :: shape(:)
        type(error_t), intent(inout) :: error

        if (error%failed()) return
        call check(c_define(self%handle, name//nul, kind, size(shape, kind=c_int32_t), &
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
        if (.not. error%failed()) call check(c_shape(self%handle, name//nul, rank, extent), error)
        shape = extent(rank:1:-1)
    end subroutine dataset_shape

    subroutine write_reals(self, name, first, n, row_values, values, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: name
        integer, intent(in) :: first, n, row_values
        real(r8), intent(in), target :: values(*)
        type(error_t), intent(inout) :: error

        if (error%failed()) return
        call check(c_rows(self%handle, name//nul, kind_double, first - 1_i8, int(n, i8), int(row_values, i8), &
                          c_loc(values)), error)
    end subroutine write_reals

    subroutine write_integers(self, name, first, n, row_values, values, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: name
        integer, intent(in) :: first, n, row_values
        integer, intent(in), target :: values(*)
        type(error_t), intent(inout) :: error

        if (error%failed()) return
        call check(c_rows(self%handle, name//nul, kind_integer, first - 1_i8, int(n, i8), int(row_values, i8), &
                          c_loc(values)), error)
    end subroutine write_integers

    subroutine write_texts(self, name, first, n, row_values, values, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: name
        integer, intent(in) :: first, n, row_values
        character(*), intent(in), target :: values(*)
        type(error_t), intent(inout) :: error

        if (error%failed()) return
        call check(c_rows(self%handle, name//nul, kind_text(len(values)), first - 1_i8, int(n, i8), int(row_values, i8), &
                          c_loc(values)), error)
    end subroutine write_texts

    subroutine read_reals(self, name, first, n, row_values, values, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: name
        integer, intent(in) :: first, n, row_values
        real(r8), intent(inout), target :: values(*)
        type(error_t), intent(inout) :: error

        if (error%failed()) return
        call check(c_rows(self%handle, name//nul, kind_double, first - 1_i8, int(n, i8), int(row_values, i8), &
                          c_loc(values)), error)
    end subroutine read_reals

    subroutine read_integers(self, name, first, n, row_values, values, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: name
        integer, intent(in) :: first, n, row_values
        integer, intent(inout), target :: values(*)
        type(error_t), intent(inout) :: error

        if (error%failed()) return
        call check(c_rows(self%handle, name//nul, kind_integer, first - 1_i8, int(n, i8), int(row_values, i8), &
                          c_loc(values)), error)
    end subroutine read_integers

    !> Write a table as the dataset `name`, unless it has no rows.
    subroutine write_table(self, name, table, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: name
        type(table_t), intent(in), target :: table
        type(error_t), intent(inout) :: error

        if (error%failed() .or. table%n_rows == 0) return
        call check(c_table(self%handle, name//nul, table%n_rows, table%columns(), int(table%n_columns, c_int32_t)), error)
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
        call check(c_attribute_size(self%handle, object//nul, name//nul, n, length), error)
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

    subroutine put_real(self, object, name, value, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: object, name
        real(r8), intent(in), target :: value
        type(error_t), intent(inout) :: error

        if (error%failed()) return
        call check(c_attribute(self%handle, object//nul, name//nul, kind_double, 0_i8, c_loc(value)), error)
    end subroutine put_real

    subroutine put_integer(self, object, name, value, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: object, name
        integer, intent(in), target :: value
        type(error_t), intent(inout) :: error

        if (error%failed()) return
        call check(c_attribute(self%handle, object//nul, name//nul, kind_integer, 0_i8, c_loc(value)), error)
    end subroutine put_integer

    !> An empty text becomes one blank: HDF5 does not support length 0.
    subroutine put_text(self, object, name, value, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: object, name, value
        type(error_t), intent(inout) :: error
        character(max(1, len(value))), target :: text

        text = value
        if (error%failed()) return
        call check(c_attribute(self%handle, object//nul, name//nul, kind_text(len(text)), 0_i8, &
                               c_loc(text)), error)
    end subroutine put_text

    subroutine put_reals(self, object, name, value, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: object, name
        real(r8), contiguous, intent(in), target :: value(:)
        type(error_t), intent(inout) :: error

        if (error%failed()) return
        call check(c_attribute(self%handle, object//nul, name//nul, kind_double, size(value, kind=i8), c_loc(value)), error)
    end subroutine put_reals

    subroutine put_integers(self, object, name, value, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: object, name
        integer, contiguous, intent(in), target :: value(:)
        type(error_t), intent(inout) :: error

        if (error%failed()) return
        call check(c_attribute(self%handle, object//nul, name//nul, kind_integer, size(value, kind=i8), c_loc(value)), error)
    end subroutine put_integers

    subroutine put_longs(self, object, name, value, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: object, name
        integer(i8), contiguous, intent(in), target :: value(:)
        type(error_t), intent(inout) :: error

        if (error%failed()) return
        call check(c_attribute(self%handle, object//nul, name//nul, kind_long, size(value, kind=i8), c_loc(value)), error)
    end subroutine put_longs

    subroutine put_texts(self, object, name, value, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: object, name
        character(*), contiguous, intent(in), target :: value(:)
        type(error_t), intent(inout) :: error

        if (error%failed()) return
        call check(c_attribute(self%handle, object//nul, name//nul, kind_text(len(value)), size(value, kind=i8), &
                               c_loc(value)), error)
    end subroutine put_texts

    subroutine get_real(self, object, name, value, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: object, name
        real(r8), intent(inout), target :: value
        type(error_t), intent(inout) :: error

        if (error%failed()) return
        call check(c_attribute(self%handle, object//nul, name//nul, kind_double, 0_i8, c_loc(value)), error)
    end subroutine get_real

    subroutine get_integer(self, object, name, value, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: object, name
        integer, intent(inout), target :: value
        type(error_t), intent(inout) :: error

        if (error%failed()) return
        call check(c_attribute(self%handle, object//nul, name//nul, kind_integer, 0_i8, c_loc(value)), error)
    end subroutine get_integer

    subroutine get_text(self, object, name, value, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: object, name
        character(:), allocatable, intent(inout), target :: value
        type(error_t), intent(inout) :: error
        integer(i8) :: n
        integer :: length

        call self%attribute_size(object, name, n, length, error)
        if (error%failed()) return
        value = repeat(' ', max(1, length))
        call check(c_attribute(self%handle, object//nul, name//nul, kind_text(len(value)), 0_i8, &
                               c_loc(value)), error)
        value = trim(value)
    end subroutine get_text

    subroutine get_reals(self, object, name, value, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: object, name
        real(r8), contiguous, intent(inout), target :: value(:)
        type(error_t), intent(inout) :: error

        if (error%failed()) return
        call check(c_attribute(self%handle, object//nul, name//nul, kind_double, size(value, kind=i8), c_loc(value)), error)
    end subroutine get_reals

    subroutine get_integers(self, object, name, value, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: object, name
        integer, contiguous, intent(inout), target :: value(:)
        type(error_t), intent(inout) :: error

        if (error%failed()) return
        call check(c_attribute(self%handle, object//nul, name//nul, kind_integer, size(value, kind=i8), c_loc(value)), error)
    end subroutine get_integers

    subroutine get_longs(self, object, name, value, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: object, name
        integer(i8), contiguous, intent(inout), target :: value(:)
        type(error_t), intent(inout) :: error

        if (error%failed()) return
        call check(c_attribute(self%handle, object//nul, name//nul, kind_long, size(value, kind=i8), c_loc(value)), error)
    end subroutine get_longs

    subroutine get_texts(self, object, name, value, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: object, name
        character(*), contiguous, intent(inout), target :: value(:)
        type(error_t), intent(inout) :: error

        if (error%failed()) return
        call check(c_attribute(self%handle, object//nul, name//nul, kind_text(len(value)), size(value, kind=i8), &
                               c_loc(value)), error)
    end subroutine get_texts

end module pw_hdf5
