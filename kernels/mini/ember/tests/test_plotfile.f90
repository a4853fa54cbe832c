!> Plotfiles contain the mesh; where one cannot be written, the run gets an error, the previous file is unchanged, and no other
!> file remains.
!>
!> test_plotfile plotfiles: writes plotfiles of a known state instead, for test_plotfile.py. test_plotfile fill: writes
!> plotfiles until one is refused, and checks that the previous one is complete.
program test_plotfile
    use, intrinsic :: iso_c_binding, only: c_int, c_long
    use, intrinsic :: iso_fortran_env, only: int8
    use ember_container, only: load_interior
    use ember_mesh, only: cartesian, cylindrical, mesh_t, v_dens
    use ember_parallel, only: comm_t
    use ember_plotfile, only: plotfile_name, write_plotfile
    use ember_test_files, only: expect_error, expect_no_file, expect_same_files, get_bytes, put_bytes, remove_file
    use ember_test_meshes, only: discard
    use ember_test_states, only: build_mesh, fill_smooth, some_info
    use ember_testing, only: expect, expect_success, finish, same_bits
    use pw_error, only: error_t, exit_system
    use pw_hdf5, only: file_t, kind_double, whole_file
    use pw_kinds, only: i8, r8
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
    character(16) :: label

    call comm%begin(error)
    call expect_success(error, 'begin')
    call get_command_argument(1, label)
    select case (label)
    case ('plotfiles')
        call write_known(2, cartesian, 'plane')
        call write_known(2, cylindrical, 'cylinder')
        call write_known(3, cartesian, 'cube')
    case ('fill')
        call fill_disk()
    case default
        call plotted(2, cartesian)
        call plotted(2, cylindrical)
        call plotted(3, cartesian)
        call refuse_places()
        call limits()
    end select
    call finish(comm)

contains

    !> For test_plotfile.py: a known state, and the mass that ember computes for it.
    subroutine write_known(dims, geometry, name)
        integer, intent(in) :: dims, geometry
        character(*), intent(in) :: name
        type(mesh_t) :: mesh

        call build_mesh(mesh, comm, dims, geometry, .false., 0)
        call fill_smooth(mesh)
        call write_plotfile(plotfile_name(name, 0), mesh, comm, some_info(), error)
        call expect_success(error, 'write_plotfile')
        call write_plotfile(plotfile_name(name//'_single', 0), mesh, comm, some_info(), error, single=.true.)
        call expect_success(error, 'write_plotfile')
        if (comm%n_ranks == 1) print '(2a, es24.16, i6)', name, ' ', mass(mesh), mesh%tree%n_leaves
        call discard(mesh)
    end subroutine write_known

    !> The mass of this rank's leaves, per radian in cylindrical geometry.
    real(r8) function mass(mesh)
        type(mesh_t), intent(in) :: mesh
        real(r8), allocatable :: u(:, :, :, :)
        real(r8) :: volume(mesh%first:mesh%last)
        integer :: l, i, zones(3)

        zones = mesh%zones()
        allocate (u(mesh%n_variables, zones(1), zones(2), zones(3)))
        mass = 0.0_r8
        do l = 1, size(mesh%local)
            call load_interior(mesh, mesh%slot(mesh%local(l)), u)
            volume = mesh%zone_volumes(mesh%local(l))
            do i = 1, zones(1)
                mass = mass + volume(i)*sum(u(v_dens, i, :, :))
            end do
        end do
    end function mass

    !> The leaves' zones are in the file, and roots have the mass of all leaves.
    subroutine plotted(dims, geometry)
        integer, intent(in) :: dims, geometry
        type(mesh_t) :: mesh
        type(file_t) :: file
        integer(i8), allocatable :: extent(:)
        integer, allocatable :: level(:), kind_of(:)
        real(r8), allocatable :: dens(:, :, :), low(:, :, :), u(:, :, :, :), all_mass(:)
        real(r8) :: root_mass, width(3)
        character(:), allocatable :: name
        integer :: node, leaf, i, n, zones(3)

        name = plotfile_name('plotted_'//to_text(dims)//to_text(geometry), 12)
        call expect(index(name, '_hdf5_plt_cnt_0012') > 0, 'name of a plotfile')
        call build_mesh(mesh, comm, dims, geometry, .true., 0)
        call fill_smooth(mesh)
        call write_plotfile(name, mesh, comm, some_info(), error)
        call expect_success(error, 'write_plotfile')
        call comm%all_gather([mass(mesh)], all_mass)
        call file%open(name, error)
        call file%shape('dens', extent, error)
        zones = mesh%zones()
        call expect(size(extent) == 4 .and. all(extent(:3) == zones), 'shape of a plotfile')
        n = int(extent(4))
        allocate (level(n), kind_of(n), low(2, 3, n), dens(zones(1), zones(2), zones(3)))
        allocate (u(mesh%n_variables, zones(1), zones(2), zones(3)))
        call file%read_integers('refine level', 1, n, 1, level, error)
        call file%read_integers('node type', 1, n, 1, kind_of, error)
        call file%read_reals('bounding box', 1, n, 6, low, error)
        root_mass = 0.0_r8
        leaf = 0
        do node = 1, n
            call file%read_reals('dens', node, 1, product(zones), dens, error)
            if (kind_of(node) == 1) then
                leaf = leaf + 1
                call expect(level(node) == mesh%tree%level(leaf) + 1, 'level of a leaf')
                call expect(all(same_bits(low(1, :, node), mesh%block_corner(leaf))), 'corner of a leaf')
                if (mesh%slot(leaf) > 0) then
                    call load_interior(mesh, mesh%slot(leaf), u)
                    call expect(all(same_bits(u(v_dens, :, :, :), dens)), 'zones of a leaf')
                end if
            end if
            if (level(node) > 1) cycle
            width = mesh%zone_size(0)
            do i = 1, zones(1)
                root_mass = root_mass + product(width)*sum(dens(i, :, :)) &
                            *merge(low(1, 1, node) + (i - 0.5_r8)*width(1), 1.0_r8, geometry == cylindrical)
            end do
        end do
        call file%close()
        call expect_success(error, 'read a plotfile')
        call expect(leaf == mesh%tree%n_leaves, 'leaves of a plotfile')
        call expect(abs(root_mass/sum(all_mass) - 1.0_r8) < 1.0e-13_r8, 'mass of the roots')
        call discard(mesh)
    end subroutine plotted

    !> Nothing is written to a place that cannot have a file.
    subroutine refuse_places()
        type(mesh_t) :: mesh

        call build_mesh(mesh, comm, 2, cartesian, .false., 0)
        call fill_smooth(mesh)
        call write_plotfile('no/such/folder', mesh, comm, some_info(), error)
        call expect_error(error, exit_system, "'no/such/folder'", 'No such file or directory', &
                          remedy="create the folder 'no/such'")
        call write_plotfile('.', mesh, comm, some_info(), error)
        call expect_error(error, exit_system, "'.'", 'not a file')
        call write_plotfile('/dev/null', mesh, comm, some_info(), error)
        call expect_error(error, exit_system, "'/dev/null'", 'not a file')
        call discard(mesh)
    end subroutine refuse_places

    !> If a file may not grow beyond a limit, as on a full disk, writing ends with an error, whenever the limit is reached;
    !> the previous file is unchanged, and no other file remains.
    subroutine limits()
        type(mesh_t) :: mesh
        integer(int8), allocatable :: whole(:)
        integer :: i

        call build_mesh(mesh, comm, 2, cartesian, .false., 0)
        call fill_smooth(mesh)
        call write_plotfile('kept', mesh, comm, some_info(), error)
        call expect_success(error, 'write_plotfile')
        call get_bytes('kept', whole)
        call put_bytes(comm, 'copy', whole)
        do i = 0, 20
            call limit_files(int(i*real(size(whole) - 1)/20))
            call write_plotfile('kept', mesh, comm, some_info(), error)
            call expect_error(error, exit_system, "'kept'", 'File too large')
            call limit_files(-1)
            if (comm%rank == 0) then
                call expect_same_files('kept', 'copy')
                call expect_no_file('kept.part')
            end if
        end do
        call discard(mesh)
        call refused_writes()
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

    !> Write plotfiles until one is refused; the previous one is complete, and the refused one is removed.
    subroutine fill_disk()
        type(mesh_t) :: mesh
        type(file_t) :: file
        integer(i8), allocatable :: extent(:)
        integer :: number

        call build_mesh(mesh, comm, 3, cartesian, .false., 0)
        call fill_smooth(mesh)
        do number = 1, 1000
            call write_plotfile(plotfile_name('full', number), mesh, comm, some_info(), error)
            if (error%failed()) exit
        end do
        print '(a)', error%message, error%remedy
        call expect(number > 1, 'space for the first')
        call expect_error(error, exit_system, "'"//plotfile_name('full', number)//"'", 'No space left on device')
        call expect_no_file(plotfile_name('full', number))
        call file%open(plotfile_name('full', number - 1), error)
        call file%shape('dens', extent, error)
        call expect_success(error, 'read what was written before the disk was full')
        call expect(size(extent) == 4, 'shape of the last plotfile')
        call file%close()
        call discard(mesh)
    end subroutine fill_disk

end program test_plotfile
