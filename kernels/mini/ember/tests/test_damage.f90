!> Faults of checkpoints: a truncated or changed file is refused; where the disk is full, writing ends with an error, the
!> previous file is unchanged, and no other file remains.
!>
!> test_damage fill: writes checkpoints until one is refused instead, and checks that the previous one is complete.
program test_damage
    use, intrinsic :: iso_c_binding, only: c_int, c_long
    use, intrinsic :: iso_fortran_env, only: int8
    use ember_mesh, only: cartesian, cylindrical, mesh_t
    use ember_output, only: checkpoint_name, output_info_t, read_checkpoint, write_checkpoint, write_plotfile
    use ember_parallel, only: comm_t
    use ember_test_files, only: expect_error, expect_no_file, expect_same_files, get_bytes, put_bytes, remove_file
    use ember_test_meshes, only: discard
    use ember_test_states, only: build_mesh, expect_info, expect_same_mesh, fill_smooth, some_info
    use ember_testing, only: expect, expect_success, finish, same_bits
    use pw_error, only: error_t, exit_system
    use pw_hdf5, only: file_t, kind_double, whole_file
    use pw_kinds, only: r8
    use pw_text, only: to_text
    implicit none

    integer(c_int), parameter :: limit_of_file_size = 1   ! RLIMIT_FSIZE of Linux

    interface
        integer(c_int) function setrlimit(resource, limits) bind(c, name='setrlimit')
            import :: c_int, c_long
            integer(c_int), value :: resource
            integer(c_long), intent(in) :: limits(2)
        end function setrlimit

        integer(c_int) function getrlimit(resource, limits) bind(c, name='getrlimit')
            import :: c_int, c_long
            integer(c_int), value :: resource
            integer(c_long), intent(out) :: limits(2)
        end function getrlimit
    end interface

    type(comm_t) :: comm
    type(error_t) :: error
    character(16) :: what

    call comm%begin(error)
    call expect_success(error, 'begin')
    call get_command_argument(1, what)
    if (what == 'fill') then
        call fill_disk()
    else
        call truncations()
        call damages()
        call limits()
    end if
    call finish(comm)

contains

    !> A truncated checkpoint is refused, wherever it ends.
    subroutine truncations()
        type(mesh_t) :: mesh
        type(output_info_t) :: info
        integer(int8), allocatable :: whole(:)
        integer :: n, step

        call build_mesh(mesh, comm, 2, cartesian, .true., 0)
        call fill_smooth(mesh)
        call write_checkpoint('whole', mesh, comm, some_info(), error)
        call get_bytes('whole', whole)
        step = max(1, size(whole)/150)
        n = 0
        do while (n < size(whole))
            call put_bytes(comm, 'cut', whole(:n))
            call read_checkpoint('cut', mesh, comm, info, error)
            call expect_error(error, exit_system, "'cut'", '')
            ! Near the ends byte by byte, more or less.
            if (n < 128 .or. size(whole) - n <= 64) then
                n = n + 7
            else
                n = min(n + step, max(n + 7, size(whole) - 64))
            end if
        end do
        call put_bytes(comm, 'cut', whole(:size(whole) - 1))
        call read_checkpoint('cut', mesh, comm, info, error)
        call expect_error(error, exit_system, "'cut'", 'truncated')
        call put_bytes(comm, 'cut', whole)
        call read_checkpoint('cut', mesh, comm, info, error)
        call expect_success(error, 'the whole again')
        call discard(mesh)
    end subroutine truncations

    !> A changed bit is detected, or has no effect on the data read; it never crashes the program.
    subroutine damages()
        type(mesh_t) :: mesh, other
        type(output_info_t) :: info
        integer(int8), allocatable :: whole(:), damaged(:)
        integer :: at, n_found, n_tried

        call build_mesh(mesh, comm, 2, cylindrical, .false., 0)
        call fill_smooth(mesh)
        call write_checkpoint('whole', mesh, comm, some_info(), error)
        call get_bytes('whole', whole)
        allocate (damaged(size(whole)))
        call build_mesh(other, comm, 2, cylindrical, .false., 0)
        n_found = 0
        n_tried = 0
        at = 1
        do while (at <= size(whole))
            damaged = whole
            damaged(at) = ieor(damaged(at), 16_int8)
            call put_bytes(comm, 'damaged', damaged)
            call read_checkpoint('damaged', other, comm, info, error)
            n_tried = n_tried + 1
            if (error%failed()) then
                n_found = n_found + 1
                call expect(index(error%message, "'damaged'") > 0, 'name in: '//error%message)
            else
                call expect_same_mesh(mesh, other, 'undetected damage of byte '//to_text(at))
                call expect_info(info, some_info())
            end if
            error = error_t()
            at = at + max(1, size(whole)/400)
        end do
        ! Nearly all of a file is zones.
        call expect(n_found > 0.9*n_tried, to_text(n_found)//' of '//to_text(n_tried)//' damages found')
        call discard(mesh)
        call discard(other)
    end subroutine damages

    !> If a file may not grow beyond a limit, as on a full disk, writing ends with an error, whenever the limit is reached;
    !> the previous file is unchanged, and no other file remains.
    subroutine limits()
        type(mesh_t) :: mesh
        type(output_info_t) :: info
        integer(int8), allocatable :: whole(:)
        integer :: i, n

        call build_mesh(mesh, comm, 2, cartesian, .false., 0)
        call fill_smooth(mesh)
        call write_checkpoint('kept', mesh, comm, some_info(), error)
        call expect_success(error, 'write_checkpoint')
        call get_bytes('kept', whole)
        n = size(whole)
        call put_bytes(comm, 'copy', whole)
        do i = 0, 20
            call limit_files(int(i*real(n - 1)/20))
            call write_checkpoint('kept', mesh, comm, some_info(), error)
            call expect_error(error, exit_system, "'kept'", 'File too large')
            call write_plotfile('kept_hdf5_plt_cnt_0000', mesh, comm, some_info(), error)
            call expect_error(error, exit_system, "'kept_hdf5_plt_cnt_0000'", 'File too large')
            call limit_files(-1)
            if (comm%rank == 0) then
                call expect_same_files('kept', 'copy')
                call expect_no_file('kept_hdf5_plt_cnt_0000')
                call expect_no_file('kept.part')
            end if
        end do
        call read_checkpoint('kept', mesh, comm, info, error)
        call expect_success(error, 'read what was written before a limit')
        call discard(mesh)
        call refused_writes()
        if (comm%rank == 0) call abandon()
    end subroutine limits

    !> Without reserved space, HDF5 itself meets the limit: when it writes rows, or when the file ends. Each time that is an
    !> error, and other files can still be written and read.
    subroutine refused_writes()
        integer, parameter :: rows = 40, row_values = 4096, steps = 40
        type(file_t) :: file
        real(r8) :: values(row_values, rows), back(row_values, rows)
        integer :: i, row

        call random_number(values)
        if (comm%rank == 0) call remove_file('refused')
        do i = 0, steps
            call limit_files(merge(-1, int(i*real(storage_size(values)/8*size(values))/steps), i == steps))
            if (comm%rank > 0) cycle
            call file%create('refused', error)
            call file%define('values', kind_double, [row_values, rows], error)
            do row = 1, rows
                call file%write_reals('values', row, 1, row_values, values(:, row), error)
            end do
            call file%put(whole_file, 'complete', 1, error)
            call file%commit(error)
            if (i < steps) then
                call expect_error(error, exit_system, "'refused'", 'File too large')
                call expect_no_file('refused')
            end if
        end do
        if (comm%rank > 0) return
        call expect_success(error, 'write without a limit')
        call file%open('refused', error)
        call file%read_reals('values', 1, rows, row_values, back, error)
        call file%close()
        call expect_success(error, 'read what was written after refused writes')
        call expect(all(same_bits(values, back)), 'values written after refused writes')
    end subroutine refused_writes

    !> A file that was begun and never ended leaves the previous one unchanged.
    subroutine abandon()
        type(file_t) :: file

        call file%create('kept', error)
        call file%put(whole_file, 'format', 'ember checkpoint', error)
        call file%reserve(error)
        call expect_success(error, 'begin a file')
        call expect_same_files('kept', 'copy')
        call file%discard()
        call expect_same_files('kept', 'copy')
        call expect_no_file('kept.part')
    end subroutine abandon

    !> Bound the size of this process's files; -1: unlimited.
    subroutine limit_files(bytes)
        integer, intent(in) :: bytes
        integer(c_long) :: bounds(2)

        call comm%barrier()
        if (comm%rank > 0) return
        call expect(getrlimit(limit_of_file_size, bounds) == 0, 'getrlimit')
        bounds(1) = bounds(2)
        if (bytes >= 0) bounds(1) = bytes
        call expect(setrlimit(limit_of_file_size, bounds) == 0, 'setrlimit')
    end subroutine limit_files

    !> Write checkpoints until one is refused; the previous one is complete, and the refused one is removed.
    subroutine fill_disk()
        type(mesh_t) :: mesh
        type(output_info_t) :: info
        integer :: number

        call build_mesh(mesh, comm, 3, cartesian, .false., 0)
        call fill_smooth(mesh)
        do number = 1, 1000
            call write_checkpoint(checkpoint_name('full', number), mesh, comm, some_info(), error)
            if (error%failed()) exit
        end do
        print '(a)', error%message, error%remedy
        call expect(number > 1, 'space for the first')
        call expect_error(error, exit_system, "'"//checkpoint_name('full', number)//"'", 'No space left on device')
        call expect_no_file(checkpoint_name('full', number))
        call read_checkpoint(checkpoint_name('full', number - 1), mesh, comm, info, error)
        call expect_success(error, 'read what was written before the disk was full')
        call discard(mesh)
    end subroutine fill_disk

end program test_damage
