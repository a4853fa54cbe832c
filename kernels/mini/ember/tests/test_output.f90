!> Checkpoints come back to the last bit, and faults of a file or of the mesh to read it into are reported; plotfiles contain
!> the mesh.
!>
!> test_output plotfiles: writes plotfiles of a known state instead, for test_plotfile.py.
program test_output
    use ember_container, only: load_interior, store_interior
    use ember_mesh, only: cartesian, cylindrical, mesh_t, reflecting, v_dens
    use ember_output, only: checkpoint_name, output_info_t, plotfile_name, read_checkpoint, read_checkpoint_head, &
        write_checkpoint, write_plotfile
    use ember_parallel, only: comm_t
    use ember_test_files, only: expect_error, expect_same_files
    use ember_test_meshes, only: discard, give_container
    use ember_test_states, only: build_mesh, describe, expect_info, expect_same_mesh, fill_smooth, some_info
    use ember_testing, only: expect, expect_success, finish, same_bits
    use pw_error, only: error_t, exit_system, exit_usage
    use pw_hdf5, only: file_t, whole_file
    use pw_kinds, only: i8, r8
    use pw_text, only: to_text
    implicit none
    type(comm_t) :: comm
    type(error_t) :: error
    character(16) :: what

    call comm%begin(error)
    call expect_success(error, 'begin')
    call get_command_argument(1, what)
    if (what == 'plotfiles') then
        call write_known(2, cartesian, 'plane')
        call write_known(2, cylindrical, 'cylinder')
        call write_known(3, cartesian, 'cube')
    else
        call round_trip(2, cartesian)
        call round_trip(2, cylindrical)
        call round_trip(3, cartesian)
        call refusals()
        call plotted(2, cartesian)
        call plotted(2, cylindrical)
        call plotted(3, cartesian)
    end if
    call finish(comm)

contains

    ! ---- Checkpoints -----------------------------------------------------------------------------------------------------

    !> Write a mesh, read it into another that has the other layout, write that: everything is the same to the last bit.
    subroutine round_trip(dims, geometry)
        integer, intent(in) :: dims, geometry
        type(mesh_t) :: mesh, other
        type(output_info_t) :: info, read_info
        character(:), allocatable :: name

        name = 'round_trip_'//to_text(dims)//to_text(geometry)
        info = some_info()
        call build_mesh(mesh, comm, dims, geometry, .false., 1)
        call fill_wild(mesh)
        call write_checkpoint(name, mesh, comm, info, error)
        call expect_success(error, 'write_checkpoint')

        call read_checkpoint_head(name, other, comm, read_info, error)
        call expect_success(error, 'read_checkpoint_head')
        call expect(other%dims == dims .and. other%geometry == geometry .and. other%n_variables == mesh%n_variables .and. &
                    other%n_species == 2 .and. all(other%boundary == mesh%boundary) .and. &
                    all(other%tree%roots == mesh%tree%roots) .and. other%highest_level == mesh%highest_level .and. &
                    all(same_bits(other%lower, mesh%lower)) .and. all(same_bits(other%upper, mesh%upper)), 'head of '//name)
        call expect_info(read_info, info)

        other%variable_last = .true.
        call give_container(other, size(mesh%local) + 5)
        call read_checkpoint(name, other, comm, read_info, error)
        call expect_success(error, 'read_checkpoint')
        call expect_info(read_info, info)
        call expect_same_mesh(mesh, other, name)
        call expect(other%n_free == 5 .and. all(other%slot(other%local) > 0) .and. &
                    all(pack(other%slot, other%tree%owner /= comm%rank) == 0), 'slots of '//name)

        call write_checkpoint(name//'_again', other, comm, read_info, error)
        call expect_success(error, 'write_checkpoint again')
        if (comm%rank == 0) call expect_same_files(name, name//'_again')
        call discard(mesh)
        call discard(other)
    end subroutine round_trip

    !> Numbers of all sizes and signs, with zeros of both signs and denormal numbers: different ones in every zone.
    subroutine fill_wild(mesh)
        type(mesh_t), intent(inout) :: mesh
        real(r8), allocatable :: u(:, :, :, :)
        integer(i8) :: state
        integer :: l, v, i, j, k, zones(3)

        zones = mesh%zones()
        allocate (u(mesh%n_variables, zones(1), zones(2), zones(3)))
        do l = 1, size(mesh%local)
            state = 7919_i8*mesh%local(l)
            do k = 1, zones(3)
                do j = 1, zones(2)
                    do i = 1, zones(1)
                        do v = 1, mesh%n_variables
                            state = modulo(state*48271_i8, 2147483647_i8)
                            u(v, i, j, k) = scale(real(state - 1073741824_i8, r8), int(modulo(state, 2000_i8)) - 1050)
                        end do
                    end do
                end do
            end do
            u(1, 1, 1, 1) = -0.0_r8
            u(2, 1, 1, 1) = 0.0_r8
            call store_interior(mesh, mesh%slot(mesh%local(l)), u)
        end do
    end subroutine fill_wild

    !> Faults of a file, or of the mesh to read it into, are reported.
    subroutine refusals()
        type(mesh_t) :: mesh

        call build_mesh(mesh, comm, 2, cartesian, .false., 0)
        call fill_smooth(mesh)
        call write_checkpoint('good', mesh, comm, some_info(), error)
        call expect_success(error, 'write_checkpoint')
        call refuse_files(mesh)
        call refuse_meshes(size(mesh%local))
        call refuse_places(mesh)
        call discard(mesh)
    end subroutine refusals

    !> What is no checkpoint is not read.
    subroutine refuse_files(mesh)
        type(mesh_t), intent(inout) :: mesh
        type(output_info_t) :: read_info

        call read_checkpoint('missing', mesh, comm, read_info, error)
        call expect_error(error, exit_system, "'missing'", 'No such file')
        if (comm%rank == 0) call write_odd_files()
        call comm%barrier()
        call read_checkpoint('text', mesh, comm, read_info, error)
        call expect_error(error, exit_system, "'text'", 'HDF5')
        call read_checkpoint('nothing', mesh, comm, read_info, error)
        call expect_error(error, exit_system, "'nothing'", 'empty')
        call read_checkpoint('.', mesh, comm, read_info, error)
        call expect_error(error, exit_system, "'.'", 'not a file')
        call read_checkpoint('unfinished', mesh, comm, read_info, error)
        call expect_error(error, exit_system, "'unfinished'", 'incomplete')
        call read_checkpoint('future', mesh, comm, read_info, error)
        call expect_error(error, exit_system, "'future'", 'version 99')
        call write_plotfile('drawn_hdf5_plt_cnt_0000', mesh, comm, some_info(), error)
        call expect_success(error, 'write_plotfile')
        call read_checkpoint('drawn_hdf5_plt_cnt_0000', mesh, comm, read_info, error)
        call expect_error(error, exit_system, "'drawn_hdf5_plt_cnt_0000'", 'checkpoint of ember')
    end subroutine refuse_files

    subroutine write_odd_files()
        type(file_t) :: file
        integer :: unit

        open (newunit=unit, file='text', action='write', status='replace')
        write (unit, '(a)') repeat('no HDF5 here ', 500)
        close (unit)
        open (newunit=unit, file='nothing', action='write', status='replace')
        close (unit)
        call file%create('unfinished', error)
        call file%put(whole_file, 'format', 'ember checkpoint', error)
        call file%put(whole_file, 'format version', 1, error)
        call file%commit(error)
        call file%create('future', error)
        call file%put(whole_file, 'format', 'ember checkpoint', error)
        call file%put(whole_file, 'format version', 99, error)
        call file%commit(error)
        call expect_success(error, 'odd files')
    end subroutine write_odd_files

    !> The checkpoint 'good' is not read into a mesh that differs, or for whose `n_local` leaves here a slot is missing.
    subroutine refuse_meshes(n_local)
        integer, intent(in) :: n_local
        type(mesh_t) :: other
        type(output_info_t) :: read_info

        call build_mesh(other, comm, 3, cartesian, .false., 0)
        call read_checkpoint('good', other, comm, read_info, error)
        call expect_error(error, exit_usage, "'good'", '2 dimensions')
        call discard(other)
        call build_mesh(other, comm, 2, cylindrical, .false., 0)
        call read_checkpoint('good', other, comm, read_info, error)
        call expect_error(error, exit_usage, "'good'", 'cartesian geometry')
        call discard(other)
        call refuse_changed('root blocks')
        call refuse_changed('domain')
        call refuse_changed('boundaries')
        call refuse_changed('variables')
        call refuse_changed('level')

        call read_checkpoint_head('good', other, comm, read_info, error)
        call give_container(other, n_local - 1)
        call read_checkpoint('good', other, comm, read_info, error)
        call expect_error(error, exit_usage, "'good'", 'memory holds', remedy='--memory')
        call discard(other)
    end subroutine refuse_meshes

    !> Nothing is written to a place that cannot have a file.
    subroutine refuse_places(mesh)
        type(mesh_t), intent(in) :: mesh

        call write_checkpoint('no/such/folder', mesh, comm, some_info(), error)
        call expect_error(error, exit_system, "'no/such/folder'", 'No such file or directory', &
                          remedy="create the folder 'no/such'")
        call write_plotfile('no/such/folder', mesh, comm, some_info(), error)
        call expect_error(error, exit_system, "'no/such/folder'", 'No such file or directory')
        call write_checkpoint('.', mesh, comm, some_info(), error)
        call expect_error(error, exit_system, "'.'", 'not a file')
        call write_checkpoint('/dev/null', mesh, comm, some_info(), error)
        call expect_error(error, exit_system, "'/dev/null'", 'not a file')
    end subroutine refuse_places

    !> The checkpoint 'good' is not read into a mesh that differs.
    subroutine refuse_changed(what)
        character(*), intent(in) :: what
        type(mesh_t) :: other
        type(output_info_t) :: info

        call describe(other, 2, cartesian, .false.)
        select case (what)
        case ('root blocks')
            other%tree%roots = [6, 4, 1]
        case ('domain')
            other%upper(1) = 3.0_r8
        case ('boundaries')
            other%boundary(2, 1) = reflecting
        case ('variables')
            other%n_variables = 9
            other%n_species = 1
        case ('level')
            other%highest_level = 2
        end select
        call give_container(other, 200)
        call read_checkpoint('good', other, comm, info, error)
        call expect_error(error, exit_usage, "'good'", what)
        call discard(other)
    end subroutine refuse_changed

    ! ---- Plotfiles -------------------------------------------------------------------------------------------------------

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
        call write_checkpoint(checkpoint_name(name, 0), mesh, comm, some_info(), error)
        call expect_success(error, 'write_checkpoint')
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

end program test_output
