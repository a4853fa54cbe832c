!> HDF5 files from Fortran: rows of datasets, tables of named values, attributes (pw_hdf5.h describes each call).
!>
!> The first failure stays in `error`, and later calls do nothing: a caller checks at the end. Shapes are
!> Fortran's, so that a row of a dataset is everything with the same last index.
module pw_hdf5
    use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_int32_t, c_int64_t, c_loc, c_null_char, c_null_ptr, c_ptr
    use pw_error, only: error_t
    use pw_kinds, only: i8, r8
    use pw_text, only: from_c
    implicit none
    private

    integer(c_int32_t), parameter, public :: kind_double = 1, kind_float = 2   ! PW_HDF5_DOUBLE, PW_HDF5_FLOAT
    integer(c_int32_t), parameter, public :: kind_integer = 3, kind_long = 4   ! PW_HDF5_INT32, PW_HDF5_INT64
    integer(c_int32_t), parameter, public :: kind_text = 5                     ! PW_HDF5_STRING

    integer, parameter :: text_length = 1024   ! PW_HDF5_TEXT
    integer, parameter :: max_rank = 8         ! PW_HDF5_RANK
    integer, parameter :: max_columns = 16
    character(*), parameter, public :: whole_file = '/'   !< the object whose attributes are the file's

    !> An open file.
    type, public :: file_t
        private
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure :: create
        procedure :: open => open_file
        procedure :: define
        procedure :: reserve
        procedure :: flush => flush_file
        procedure :: commit
        procedure :: discard
        procedure :: close => close_file
        procedure :: has
        procedure :: shape => dataset_shape
        procedure :: write_table
        procedure :: text_length => column_text_length
        procedure :: has_attribute
        procedure :: attribute_size
        ! (name, first, n, row_values, values, error): n rows of row_values values from row `first` on, counted from 1.
        procedure :: write_reals
        procedure :: write_integers
        procedure :: write_longs
        procedure :: write_texts
        procedure :: read_reals
        procedure :: read_integers
        procedure :: read_longs
        procedure, private :: read_real_column, read_long_column, read_text_column
        !> call read_column(name, column, values, error): values(:), all rows.
        generic :: read_column => read_real_column, read_long_column, read_text_column
        procedure, private :: put_real, put_integer, put_text, put_reals, put_integers, put_texts
        !> call put(object, name, value, error): an attribute of a dataset, or of the file; a single value or values(:).
        generic :: put => put_real, put_integer, put_text, put_reals, put_integers, put_texts
        procedure, private :: get_real, get_integer, get_text, get_reals, get_integers, get_texts
        generic :: get => get_real, get_integer, get_text, get_reals, get_integers, get_texts
    end type file_t

    !> A table to be written, column by column; the values must exist until it is written.
    type, public :: table_t
        private
        integer :: n_columns = 0
        integer(i8) :: n_rows = 0
        character(kind=c_char) :: name(81, max_columns)
        type(c_ptr) :: values(max_columns) = c_null_ptr
        integer(c_int32_t) :: kind(max_columns) = 0, length(max_columns) = 0
    contains
        procedure, private :: add_reals, add_integers, add_longs, add_texts
        generic :: add => add_reals, add_integers, add_longs, add_texts
    end type table_t

    type, bind(c) :: failure_t
        integer(c_int32_t) :: code
        character(kind=c_char) :: message(text_length), remedy(text_length)
    end type failure_t

    type, bind(c) :: column_t
        type(c_ptr) :: name, values
        integer(c_int32_t) :: kind, length
    end type column_t

    interface
        integer(c_int32_t) function c_create(path, file, failure) bind(c, name='pw_hdf5_create')
            import :: c_char, c_int32_t, c_ptr, failure_t
            character(kind=c_char), intent(in) :: path(*)
            type(c_ptr), intent(out) :: file
            type(failure_t), intent(inout) :: failure
        end function c_create

        integer(c_int32_t) function c_open(path, file, failure) bind(c, name='pw_hdf5_open')
            import :: c_char, c_int32_t, c_ptr, failure_t
            character(kind=c_char), intent(in) :: path(*)
            type(c_ptr), intent(out) :: file
            type(failure_t), intent(inout) :: failure
        end function c_open

        integer(c_int32_t) function c_define(file, name, kind, length, rank, shape, failure) bind(c, name='pw_hdf5_define')
            import :: c_char, c_int32_t, c_int64_t, c_ptr, failure_t
            type(c_ptr), value :: file
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int32_t), value :: kind, length, rank
            integer(c_int64_t), intent(in) :: shape(*)
            type(failure_t), intent(inout) :: failure
        end function c_define

        integer(c_int32_t) function c_reserve(file, failure) bind(c, name='pw_hdf5_reserve')
            import :: c_int32_t, c_ptr, failure_t
            type(c_ptr), value :: file
            type(failure_t), intent(inout) :: failure
        end function c_reserve

        integer(c_int32_t) function c_write_rows(file, name, kind, length, first, n, row_values, values, failure) &
            bind(c, name='pw_hdf5_write_rows')
            import :: c_char, c_int32_t, c_int64_t, c_ptr, failure_t
            type(c_ptr), value :: file, values
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int32_t), value :: kind, length
            integer(c_int64_t), value :: first, n, row_values
            type(failure_t), intent(inout) :: failure
        end function c_write_rows

        integer(c_int32_t) function c_read_rows(file, name, kind, length, first, n, row_values, values, failure) &
            bind(c, name='pw_hdf5_read_rows')
            import :: c_char, c_int32_t, c_int64_t, c_ptr, failure_t
            type(c_ptr), value :: file, values
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int32_t), value :: kind, length
            integer(c_int64_t), value :: first, n, row_values
            type(failure_t), intent(inout) :: failure
        end function c_read_rows

        integer(c_int32_t) function c_write_table(file, name, n, columns, n_columns, failure) &
            bind(c, name='pw_hdf5_write_table')
            import :: c_char, c_int32_t, c_int64_t, c_ptr, column_t, failure_t
            type(c_ptr), value :: file
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int64_t), value :: n
            type(column_t), intent(in) :: columns(*)
            integer(c_int32_t), value :: n_columns
            type(failure_t), intent(inout) :: failure
        end function c_write_table

        integer(c_int32_t) function c_read_column(file, name, column, kind, length, n, values, failure) &
            bind(c, name='pw_hdf5_read_column')
            import :: c_char, c_int32_t, c_int64_t, c_ptr, failure_t
            type(c_ptr), value :: file, values
            character(kind=c_char), intent(in) :: name(*), column(*)
            integer(c_int32_t), value :: kind, length
            integer(c_int64_t), value :: n
            type(failure_t), intent(inout) :: failure
        end function c_read_column

        integer(c_int32_t) function c_column_length(file, name, column, length, failure) &
            bind(c, name='pw_hdf5_column_length')
            import :: c_char, c_int32_t, c_ptr, failure_t
            type(c_ptr), value :: file
            character(kind=c_char), intent(in) :: name(*), column(*)
            integer(c_int32_t), intent(out) :: length
            type(failure_t), intent(inout) :: failure
        end function c_column_length

        integer(c_int32_t) function c_write_attribute(file, object, name, kind, length, n, values, failure) &
            bind(c, name='pw_hdf5_write_attribute')
            import :: c_char, c_int32_t, c_int64_t, c_ptr, failure_t
            type(c_ptr), value :: file, values
            character(kind=c_char), intent(in) :: object(*), name(*)
            integer(c_int32_t), value :: kind, length
            integer(c_int64_t), value :: n
            type(failure_t), intent(inout) :: failure
        end function c_write_attribute

        integer(c_int32_t) function c_has_attribute(file, object, name) bind(c, name='pw_hdf5_has_attribute')
            import :: c_char, c_int32_t, c_ptr
            type(c_ptr), value :: file
            character(kind=c_char), intent(in) :: object(*), name(*)
        end function c_has_attribute

        integer(c_int32_t) function c_attribute_size(file, object, name, n, length, failure) &
            bind(c, name='pw_hdf5_attribute_size')
            import :: c_char, c_int32_t, c_int64_t, c_ptr, failure_t
            type(c_ptr), value :: file
            character(kind=c_char), intent(in) :: object(*), name(*)
            integer(c_int64_t), intent(out) :: n
            integer(c_int32_t), intent(out) :: length
            type(failure_t), intent(inout) :: failure
        end function c_attribute_size

        integer(c_int32_t) function c_read_attribute(file, object, name, kind, length, n, values, failure) &
            bind(c, name='pw_hdf5_read_attribute')
            import :: c_char, c_int32_t, c_int64_t, c_ptr, failure_t
            type(c_ptr), value :: file, values
            character(kind=c_char), intent(in) :: object(*), name(*)
            integer(c_int32_t), value :: kind, length
            integer(c_int64_t), value :: n
            type(failure_t), intent(inout) :: failure
        end function c_read_attribute

        integer(c_int32_t) function c_flush(file, failure) bind(c, name='pw_hdf5_flush')
            import :: c_int32_t, c_ptr, failure_t
            type(c_ptr), value :: file
            type(failure_t), intent(inout) :: failure
        end function c_flush

        integer(c_int32_t) function c_commit(file, failure) bind(c, name='pw_hdf5_commit')
            import :: c_int32_t, c_ptr, failure_t
            type(c_ptr), intent(inout) :: file
            type(failure_t), intent(inout) :: failure
        end function c_commit

        subroutine c_discard(file) bind(c, name='pw_hdf5_discard')
            import :: c_ptr
            type(c_ptr), intent(inout) :: file
        end subroutine c_discard

        subroutine c_close(file) bind(c, name='pw_hdf5_close')
            import :: c_ptr
            type(c_ptr), intent(inout) :: file
        end subroutine c_close

        integer(c_int32_t) function c_has(file, name) bind(c, name='pw_hdf5_has')
            import :: c_char, c_int32_t, c_ptr
            type(c_ptr), value :: file
            character(kind=c_char), intent(in) :: name(*)
        end function c_has

        integer(c_int32_t) function c_shape(file, name, rank, shape, failure) bind(c, name='pw_hdf5_shape')
            import :: c_char, c_int32_t, c_int64_t, c_ptr, failure_t
            type(c_ptr), value :: file
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int32_t), intent(out) :: rank
            integer(c_int64_t), intent(inout) :: shape(*)
            type(failure_t), intent(inout) :: failure
        end function c_shape

        integer(c_int32_t) function c_checksum(values, bytes) bind(c, name='pw_hdf5_checksum')
            import :: c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: values
            integer(c_int64_t), value :: bytes
        end function c_checksum
    end interface

    public :: checksum

contains

    !> Begin to write the file `path`. In any case end it with `commit`.
    subroutine create(self, path, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: path
        type(error_t), intent(inout) :: error
        type(failure_t) :: failure

        if (error%failed()) return
        call note(c_create(path//c_null_char, self%handle, failure), failure, error)
    end subroutine create

    !> Open the file `path` to read it.
    subroutine open_file(self, path, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: path
        type(error_t), intent(inout) :: error
        type(failure_t) :: failure

        if (error%failed()) return
        call note(c_open(path//c_null_char, self%handle, failure), failure, error)
    end subroutine open_file

    !> A dataset of values of `kind` (texts of `length` characters), of that `shape`; its rows are written later.
    subroutine define(self, name, kind, shape, error, length)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: name
        integer(c_int32_t), intent(in) :: kind
        integer, intent(in) :: shape(:)
        type(error_t), intent(inout) :: error
        integer, intent(in), optional :: length
        type(failure_t) :: failure
        integer(c_int32_t) :: width

        if (error%failed()) return
        width = 0
        if (present(length)) width = int(length, c_int32_t)
        call note(c_define(self%handle, name//c_null_char, kind, width, size(shape, kind=c_int32_t), &
                           int(shape(size(shape):1:-1), c_int64_t), failure), failure, error)
    end subroutine define

    !> Make the file system reserve the space of all that is defined.
    subroutine reserve(self, error)
        class(file_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        type(failure_t) :: failure

        if (error%failed()) return
        call note(c_reserve(self%handle, failure), failure, error)
    end subroutine reserve

    !> Pass all that was written to the operating system.
    subroutine flush_file(self, error)
        class(file_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        type(failure_t) :: failure

        if (error%failed()) return
        call note(c_flush(self%handle, failure), failure, error)
    end subroutine flush_file

    !> End a file that was written: it is on the disk under its final name, or there is an error and the file is removed.
    subroutine commit(self, error)
        class(file_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        type(failure_t) :: failure

        if (error%failed()) then
            call self%discard()
        else
            call note(c_commit(self%handle, failure), failure, error)
        end if
    end subroutine commit

    !> Discard a file that is being written.
    subroutine discard(self)
        class(file_t), intent(inout) :: self

        if (c_associated(self%handle)) call c_discard(self%handle)
    end subroutine discard

    !> Close a file that was read.
    subroutine close_file(self)
        class(file_t), intent(inout) :: self

        if (c_associated(self%handle)) call c_close(self%handle)
    end subroutine close_file

    !> Whether a dataset of that name exists.
    logical function has(self, name)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: name

        has = c_has(self%handle, name//c_null_char) /= 0
    end function has

    !> The shape of a dataset.
    subroutine dataset_shape(self, name, shape, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: name
        integer(i8), allocatable, intent(out) :: shape(:)
        type(error_t), intent(inout) :: error
        type(failure_t) :: failure
        integer(c_int32_t) :: rank
        integer(c_int64_t) :: extent(max_rank)

        shape = [integer(i8) ::]
        if (error%failed()) return
        call note(c_shape(self%handle, name//c_null_char, rank, extent, failure), failure, error)
        if (.not. error%failed()) shape = extent(rank:1:-1)
    end subroutine dataset_shape

    subroutine write_reals(self, name, first, n, row_values, values, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: name
        integer, intent(in) :: first, n, row_values
        real(r8), intent(in), target :: values(*)
        type(error_t), intent(inout) :: error

        call write_any(self, name, kind_double, 0, first, n, row_values, c_loc(values), error)
    end subroutine write_reals

    subroutine write_integers(self, name, first, n, row_values, values, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: name
        integer, intent(in) :: first, n, row_values
        integer, intent(in), target :: values(*)
        type(error_t), intent(inout) :: error

        call write_any(self, name, kind_integer, 0, first, n, row_values, c_loc(values), error)
    end subroutine write_integers

    subroutine write_longs(self, name, first, n, row_values, values, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: name
        integer, intent(in) :: first, n, row_values
        integer(i8), intent(in), target :: values(*)
        type(error_t), intent(inout) :: error

        call write_any(self, name, kind_long, 0, first, n, row_values, c_loc(values), error)
    end subroutine write_longs

    subroutine write_texts(self, name, first, n, row_values, values, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: name
        integer, intent(in) :: first, n, row_values
        character(*), intent(in), target :: values(*)
        type(error_t), intent(inout) :: error

        call write_any(self, name, kind_text, len(values), first, n, row_values, c_loc(values), error)
    end subroutine write_texts

    subroutine write_any(self, name, kind, length, first, n, row_values, values, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: name
        integer(c_int32_t), intent(in) :: kind
        integer, intent(in) :: length, first, n, row_values
        type(c_ptr), intent(in) :: values
        type(error_t), intent(inout) :: error
        type(failure_t) :: failure

        if (error%failed()) return
        call note(c_write_rows(self%handle, name//c_null_char, kind, int(length, c_int32_t), first - 1_i8, int(n, i8), &
                               int(row_values, i8), values, failure), failure, error)
    end subroutine write_any

    subroutine read_reals(self, name, first, n, row_values, values, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: name
        integer, intent(in) :: first, n, row_values
        real(r8), intent(inout), target :: values(*)
        type(error_t), intent(inout) :: error

        call read_any(self, name, kind_double, first, n, row_values, c_loc(values), error)
    end subroutine read_reals

    subroutine read_integers(self, name, first, n, row_values, values, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: name
        integer, intent(in) :: first, n, row_values
        integer, intent(inout), target :: values(*)
        type(error_t), intent(inout) :: error

        call read_any(self, name, kind_integer, first, n, row_values, c_loc(values), error)
    end subroutine read_integers

    subroutine read_longs(self, name, first, n, row_values, values, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: name
        integer, intent(in) :: first, n, row_values
        integer(i8), intent(inout), target :: values(*)
        type(error_t), intent(inout) :: error

        call read_any(self, name, kind_long, first, n, row_values, c_loc(values), error)
    end subroutine read_longs

    subroutine read_any(self, name, kind, first, n, row_values, values, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: name
        integer(c_int32_t), intent(in) :: kind
        integer, intent(in) :: first, n, row_values
        type(c_ptr), intent(in) :: values
        type(error_t), intent(inout) :: error
        type(failure_t) :: failure

        if (error%failed()) return
        call note(c_read_rows(self%handle, name//c_null_char, kind, 0_c_int32_t, first - 1_i8, int(n, i8), &
                              int(row_values, i8), values, failure), failure, error)
    end subroutine read_any

    !> Columns for a table: (rows) of reals, integers or texts; all columns of a table have the same number of rows.
    subroutine add_reals(self, name, values)
        class(table_t), intent(inout) :: self
        character(*), intent(in) :: name
        real(r8), contiguous, intent(in), target :: values(:)

        call add_any(self, name, kind_double, 0, size(values, kind=i8), c_loc(values))
    end subroutine add_reals

    subroutine add_integers(self, name, values)
        class(table_t), intent(inout) :: self
        character(*), intent(in) :: name
        integer, contiguous, intent(in), target :: values(:)

        call add_any(self, name, kind_integer, 0, size(values, kind=i8), c_loc(values))
    end subroutine add_integers

    subroutine add_longs(self, name, values)
        class(table_t), intent(inout) :: self
        character(*), intent(in) :: name
        integer(i8), contiguous, intent(in), target :: values(:)

        call add_any(self, name, kind_long, 0, size(values, kind=i8), c_loc(values))
    end subroutine add_longs

    subroutine add_texts(self, name, values)
        class(table_t), intent(inout) :: self
        character(*), intent(in) :: name
        character(*), contiguous, intent(in), target :: values(:)

        call add_any(self, name, kind_text, len(values), size(values, kind=i8), c_loc(values))
    end subroutine add_texts

    subroutine add_any(self, name, kind, length, n_rows, values)
        class(table_t), intent(inout) :: self
        character(*), intent(in) :: name
        integer(c_int32_t), intent(in) :: kind
        integer, intent(in) :: length
        integer(i8), intent(in) :: n_rows
        type(c_ptr), intent(in) :: values
        integer :: c, i

        c = self%n_columns + 1
        self%n_columns = c
        self%n_rows = n_rows
        self%name(:, c) = c_null_char
        do i = 1, min(len(name), size(self%name, 1) - 1)
            self%name(i, c) = name(i:i)
        end do
        self%kind(c) = kind
        self%length(c) = int(length, c_int32_t)
        self%values(c) = values
    end subroutine add_any

    !> Write a table as the dataset `name`, unless it has no rows.
    subroutine write_table(self, name, table, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: name
        type(table_t), intent(in), target :: table
        type(error_t), intent(inout) :: error
        type(column_t) :: columns(max_columns)
        type(failure_t) :: failure
        integer :: c

        if (error%failed() .or. table%n_rows == 0) return
        do c = 1, table%n_columns
            columns(c) = column_t(c_loc(table%name(1, c)), table%values(c), table%kind(c), table%length(c))
        end do
        call note(c_write_table(self%handle, name//c_null_char, table%n_rows, columns, int(table%n_columns, c_int32_t), &
                                failure), failure, error)
    end subroutine write_table

    subroutine read_real_column(self, name, column, values, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: name, column
        real(r8), contiguous, intent(inout), target :: values(:)
        type(error_t), intent(inout) :: error

        call read_any_column(self, name, column, kind_double, 0, size(values, kind=i8), c_loc(values), error)
    end subroutine read_real_column

    subroutine read_long_column(self, name, column, values, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: name, column
        integer(i8), contiguous, intent(inout), target :: values(:)
        type(error_t), intent(inout) :: error

        call read_any_column(self, name, column, kind_long, 0, size(values, kind=i8), c_loc(values), error)
    end subroutine read_long_column

    subroutine read_text_column(self, name, column, values, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: name, column
        character(*), contiguous, intent(inout), target :: values(:)
        type(error_t), intent(inout) :: error

        call read_any_column(self, name, column, kind_text, len(values), size(values, kind=i8), c_loc(values), error)
    end subroutine read_text_column

    subroutine read_any_column(self, name, column, kind, length, n, values, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: name, column
        integer(c_int32_t), intent(in) :: kind
        integer, intent(in) :: length
        integer(i8), intent(in) :: n
        type(c_ptr), intent(in) :: values
        type(error_t), intent(inout) :: error
        type(failure_t) :: failure

        if (error%failed()) return
        call note(c_read_column(self%handle, name//c_null_char, column//c_null_char, kind, int(length, c_int32_t), n, values, &
                                failure), failure, error)
    end subroutine read_any_column

    !> The length of the texts in a column; 0 if it has none.
    integer function column_text_length(self, name, column, error) result(length)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: name, column
        type(error_t), intent(inout) :: error
        type(failure_t) :: failure
        integer(c_int32_t) :: width

        length = 0
        if (error%failed()) return
        call note(c_column_length(self%handle, name//c_null_char, column//c_null_char, width, failure), failure, error)
        length = int(width)
    end function column_text_length

    subroutine put_real(self, object, name, value, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: object, name
        real(r8), intent(in), target :: value
        type(error_t), intent(inout) :: error

        call put_any(self, object, name, kind_double, 0, 0, c_loc(value), error)
    end subroutine put_real

    subroutine put_integer(self, object, name, value, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: object, name
        integer, intent(in), target :: value
        type(error_t), intent(inout) :: error

        call put_any(self, object, name, kind_integer, 0, 0, c_loc(value), error)
    end subroutine put_integer

    !> An empty text becomes one blank: HDF5 does not support length 0.
    subroutine put_text(self, object, name, value, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: object, name, value
        type(error_t), intent(inout) :: error
        character(max(1, len(value))), target :: text

        text = value
        call put_any(self, object, name, kind_text, len(text), 0, c_loc(text), error)
    end subroutine put_text

    subroutine put_reals(self, object, name, value, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: object, name
        real(r8), contiguous, intent(in), target :: value(:)
        type(error_t), intent(inout) :: error

        call put_any(self, object, name, kind_double, 0, size(value), c_loc(value), error)
    end subroutine put_reals

    subroutine put_integers(self, object, name, value, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: object, name
        integer, contiguous, intent(in), target :: value(:)
        type(error_t), intent(inout) :: error

        call put_any(self, object, name, kind_integer, 0, size(value), c_loc(value), error)
    end subroutine put_integers

    subroutine put_texts(self, object, name, value, error)
        class(file_t), intent(inout) :: self
        character(*), intent(in) :: object, name
        character(*), contiguous, intent(in), target :: value(:)
        type(error_t), intent(inout) :: error

        call put_any(self, object, name, kind_text, len(value), size(value), c_loc(value), error)
    end subroutine put_texts

    subroutine put_any(self, object, name, kind, length, n, values, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: object, name
        integer(c_int32_t), intent(in) :: kind
        integer, intent(in) :: length, n
        type(c_ptr), intent(in) :: values
        type(error_t), intent(inout) :: error
        type(failure_t) :: failure

        if (error%failed()) return
        call note(c_write_attribute(self%handle, object//c_null_char, name//c_null_char, kind, int(length, c_int32_t), &
                                    int(n, i8), values, failure), failure, error)
    end subroutine put_any

    !> Whether such an attribute exists.
    logical function has_attribute(self, object, name)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: object, name

        has_attribute = c_has_attribute(self%handle, object//c_null_char, name//c_null_char) /= 0
    end function has_attribute

    !> The number of values of an attribute, and the length of its texts (0 if it has none).
    subroutine attribute_size(self, object, name, n, length, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: object, name
        integer(i8), intent(out) :: n
        integer, intent(out) :: length
        type(error_t), intent(inout) :: error
        type(failure_t) :: failure
        integer(c_int32_t) :: width

        n = 0
        length = 0
        if (error%failed()) return
        call note(c_attribute_size(self%handle, object//c_null_char, name//c_null_char, n, width, failure), failure, error)
        length = int(width)
    end subroutine attribute_size

    subroutine get_real(self, object, name, value, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: object, name
        real(r8), intent(inout), target :: value
        type(error_t), intent(inout) :: error

        call get_any(self, object, name, kind_double, 0, 1, c_loc(value), error)
    end subroutine get_real

    subroutine get_integer(self, object, name, value, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: object, name
        integer, intent(inout), target :: value
        type(error_t), intent(inout) :: error

        call get_any(self, object, name, kind_integer, 0, 1, c_loc(value), error)
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
        if (allocated(value)) deallocate (value)
        allocate (character(max(1, length)) :: value)
        value = repeat(' ', len(value))
        call get_any(self, object, name, kind_text, len(value), 1, c_loc(value), error)
        if (.not. error%failed()) value = trim(value)
    end subroutine get_text

    subroutine get_reals(self, object, name, value, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: object, name
        real(r8), contiguous, intent(inout), target :: value(:)
        type(error_t), intent(inout) :: error

        call get_any(self, object, name, kind_double, 0, size(value), c_loc(value), error)
    end subroutine get_reals

    subroutine get_integers(self, object, name, value, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: object, name
        integer, contiguous, intent(inout), target :: value(:)
        type(error_t), intent(inout) :: error

        call get_any(self, object, name, kind_integer, 0, size(value), c_loc(value), error)
    end subroutine get_integers

    subroutine get_texts(self, object, name, value, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: object, name
        character(*), contiguous, intent(inout), target :: value(:)
        type(error_t), intent(inout) :: error

        call get_any(self, object, name, kind_text, len(value), size(value), c_loc(value), error)
    end subroutine get_texts

    subroutine get_any(self, object, name, kind, length, n, values, error)
        class(file_t), intent(in) :: self
        character(*), intent(in) :: object, name
        integer(c_int32_t), intent(in) :: kind
        integer, intent(in) :: length, n
        type(c_ptr), intent(in) :: values
        type(error_t), intent(inout) :: error
        type(failure_t) :: failure

        if (error%failed()) return
        call note(c_read_attribute(self%handle, object//c_null_char, name//c_null_char, kind, int(length, c_int32_t), &
                                   int(n, i8), values, failure), failure, error)
    end subroutine get_any

    !> CRC-32 of the first `n` numbers of `values`, as a number from 0 to 2^32 - 1.
    integer(i8) function checksum(n, values)
        integer, intent(in) :: n
        real(r8), intent(in), target :: values(*)

        checksum = iand(int(c_checksum(c_loc(values), 8_i8*n), i8), int(z'ffffffff', i8))
    end function checksum

    !> Convert a failure to an error.
    subroutine note(code, failure, error)
        integer(c_int32_t), intent(in) :: code
        type(failure_t), intent(in) :: failure
        type(error_t), intent(inout) :: error

        if (code /= 0) call error%raise(int(code), from_c(failure%message), 'pw_hdf5', from_c(failure%remedy))
    end subroutine note

end module pw_hdf5
