!> Checkpoints come back to the last bit, and faults of one are reported; plotfiles contain the mesh; a full disk
!> leaves existing files unchanged.
!>
!> test_output plotfiles: writes plotfiles of a known state instead, for test_plotfile.py. test_output fill: writes checkpoints
!> until one is refused, and checks that the previous one is complete.
program test_output
    use, intrinsic :: iso_c_binding, only: c_int, c_long
    use, intrinsic :: iso_fortran_env, only: int8, output_unit
    use ember_container, only: block_bytes, container_create, container_free, container_touch, load_interior, store_interior
    use pw_hdf5, only: file_t, kind_double, whole_file
    use ember_mesh, only: block_zones, cartesian, cylindrical, first_species, mesh_t, outflow, periodic, reflecting, v_dens, &
        v_ener, v_gamc, v_momx, v_momz, v_pres, v_temp
    use ember_output, only: checkpoint_name, output_info_t, plotfile_name, read_checkpoint, read_checkpoint_head, &
        write_checkpoint, write_plotfile
    use ember_parallel, only: comm_t
    use ember_tree, only: tree_t
    use ember_tree_adapt, only: adapt_tree
    use pw_error, only: error_t, exit_system, exit_usage
    use pw_kinds, only: i8, r8
    use pw_pages, only: pages_none
    use pw_text, only: to_text
    implicit none

    real(r8), parameter :: pi = acos(-1.0_r8)
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
    integer :: failures = 0
    character(:), allocatable :: last_remedy
    character(16) :: what

    call comm%begin(error)
    call expect_none('begin')
    call get_command_argument(1, what)
    select case (what)
    case ('plotfiles')
        call write_known(2, cartesian, 'plane')
        call write_known(2, cylindrical, 'cylinder')
        call write_known(3, cartesian, 'cube')
    case ('fill')
        call fill_disk()
    case default
        call round_trips()
        call refusals()
        call truncations()
        call damages()
        call limits()
        call plotfiles()
    end select
    call comm%barrier()
    if (failures > 0) then
        flush (output_unit)
        call comm%abort(1)
    end if
    call comm%end()

contains

    ! ---- Meshes ----------------------------------------------------------------------------------------------------------

    !> A mesh of several levels, with its container; `spare` slots stay free.
    subroutine build(mesh, dims, geometry, variable_last, spare)
        type(mesh_t), intent(out) :: mesh
        integer, intent(in) :: dims, geometry, spare
        logical, intent(in) :: variable_last
        type(error_t) :: error
        type(tree_t) :: refined
        integer, allocatable :: mark(:), origin_kind(:), origin(:), owner(:)
        integer :: leaf, pass, roots(3)
        logical :: closed(3)

        call describe(mesh, dims, geometry, variable_last)
        roots = mesh%tree%roots
        closed = mesh%tree%periodic
        call mesh%tree%start(dims, roots, closed, 0, error)
        do pass = 1, mesh%highest_level
            allocate (mark(mesh%tree%n_leaves), source=0)
            do leaf = 1, mesh%tree%n_leaves
                if (holds_corner(mesh, leaf)) mark(leaf) = 1
            end do
            call adapt_tree(mesh%tree, mark, mesh%lowest_level, mesh%highest_level, refined, origin_kind, origin)
            mesh%tree = refined
            deallocate (mark)
        end do
        call mesh%tree%partition(comm%n_ranks, owner)
        mesh%tree%owner = owner
        mesh%rank = comm%rank
        mesh%n_ranks = comm%n_ranks
        call mesh%note_owners()
        call give_container(mesh, size(mesh%local) + spare)
        allocate (mesh%slot(mesh%tree%n_leaves), source=0)
        do leaf = 1, size(mesh%local)
            mesh%slot(mesh%local(leaf)) = mesh%take_slot()
        end do
    end subroutine build

    !> Refine around a point off the symmetry axes.
    pure logical function holds_corner(mesh, leaf)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: leaf
        real(r8) :: low(3), width(3), point(3)

        low = mesh%block_corner(leaf)
        width = mesh%zone_size(mesh%tree%level(leaf))*mesh%zones()
        point = mesh%lower + 0.3_r8*(mesh%upper - mesh%lower)
        holds_corner = all(low(:mesh%dims) <= point(:mesh%dims) .and. point(:mesh%dims) < low(:mesh%dims) + width(:mesh%dims))
    end function holds_corner

    subroutine describe(mesh, dims, geometry, variable_last)
        type(mesh_t), intent(out) :: mesh
        integer, intent(in) :: dims, geometry
        logical, intent(in) :: variable_last

        mesh%dims = dims
        mesh%geometry = geometry
        mesh%variable_last = variable_last
        mesh%n_species = 2
        mesh%n_variables = first_species - 1 + mesh%n_species
        mesh%highest_level = 3
        mesh%tree%dims = dims
        if (dims == 3) then
            mesh%highest_level = 2
            mesh%lower = [-0.5_r8, 0.0_r8, 0.25_r8]
            mesh%upper = [0.5_r8, 1.0_r8, 1.25_r8]
        else if (geometry == cylindrical) then
            mesh%lower = [0.0_r8, -1.0_r8, 0.0_r8]
            mesh%upper = [1.0_r8, 1.0_r8, 1.0_r8]
            mesh%tree%roots = [1, 2, 1]
        else
            mesh%lower = [0.0_r8, -0.5_r8, 0.0_r8]
            mesh%upper = [1.5_r8, 0.5_r8, 1.0_r8]
            mesh%tree%roots = [3, 2, 1]
        end if
        mesh%boundary(:, 1) = [reflecting, outflow]
        mesh%boundary(:, 2) = periodic
        mesh%boundary(:, 3) = outflow
        if (geometry == cylindrical) mesh%boundary(:, 2) = outflow
        mesh%tree%periodic = mesh%boundary(1, :) == periodic
    end subroutine describe

    subroutine give_container(mesh, slots)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: slots
        type(error_t) :: error

        call container_create(mesh, slots*block_bytes(mesh), pages_none, error)
        if (error%failed()) then
            print '(a)', error%message
            call comm%abort(1)
        end if
        call container_touch(mesh)
    end subroutine give_container

    !> A smooth state; test_plotfile.py has the same formulas.
    subroutine fill_smooth(mesh)
        type(mesh_t), intent(inout) :: mesh
        real(r8), allocatable :: u(:, :, :, :)
        real(r8) :: width(3), corner(3), x(3), velocity(3), share
        integer :: l, leaf, i, j, k, zones(3)

        zones = mesh%zones()
        allocate (u(mesh%n_variables, zones(1), zones(2), zones(3)))
        do l = 1, size(mesh%local)
            leaf = mesh%local(l)
            width = mesh%zone_size(mesh%tree%level(leaf))
            corner = mesh%block_corner(leaf)
            do k = 1, zones(3)
                do j = 1, zones(2)
                    do i = 1, zones(1)
                        x = corner + width*([i, j, k] - 0.5_r8)
                        if (mesh%dims == 2) x(3) = 0.0_r8
                        velocity = [x(1) - 0.3_r8, 0.5_r8*x(2) + 1.0_r8, x(3)*x(1) + 0.25_r8]
                        share = 0.25_r8 + 0.1_r8*x(1)
                        u(v_dens, i, j, k) = 2.0_r8 + sin(2.0_r8*pi*x(1))*cos(2.0_r8*pi*x(2)) + 0.4_r8*(1.0_r8 + x(1))*(x(2) + x(3))
                        u(v_momx:v_momz, i, j, k) = u(v_dens, i, j, k)*velocity
                        u(v_pres, i, j, k) = 1.0_r8 + 0.1_r8*x(1) + 0.2_r8*x(2)**2 + 0.3_r8*x(3)
                        u(v_ener, i, j, k) = u(v_pres, i, j, k)/0.4_r8 + 0.5_r8*u(v_dens, i, j, k)*sum(velocity**2)
                        u(v_temp, i, j, k) = 300.0_r8*u(v_pres, i, j, k)/u(v_dens, i, j, k)
                        u(v_gamc, i, j, k) = 1.4_r8
                        u(first_species, i, j, k) = u(v_dens, i, j, k)*share
                        u(first_species + 1, i, j, k) = u(v_dens, i, j, k)*(1.0_r8 - share)
                    end do
                end do
            end do
            call store_interior(mesh, mesh%slot(leaf), u)
        end do
    end subroutine fill_smooth

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

    function some_info() result(info)
        type(output_info_t) :: info

        info%time = 0.1_r8
        info%dt = 1.0e-3_r8/3.0_r8
        info%step = 17
        info%problem = 'test'
        allocate (info%species(2))
        info%species(1) = 'he4'
        info%species(2) = 'neon20'
        call info%set('gamma', '1.4')
        call info%set('cfl', '0.4')
        call info%set('levels', '4')
        call info%set('verbose', 'true')
        call info%set('geometry', 'as it is')
        call info%set('note', 'a text'//repeat(' that is long', 10))
        call info%set('empty', '')
        call info%set('next_plot', 0.3_r8)
        call info%set('next_checkpoint', 0.1_r8 + 0.2_r8)
        call info%set('zones_updated', 123456789012345_i8)
        call info%set('plots', 3)
    end function some_info

    ! ---- Checkpoints -----------------------------------------------------------------------------------------------------

    subroutine round_trips()
        integer :: dims

        do dims = 2, 3
            call round_trip(dims, cartesian)
        end do
        call round_trip(2, cylindrical)
    end subroutine round_trips

    !> Write a mesh, read it into another that has the other layout, write that: everything is the same to the last bit.
    subroutine round_trip(dims, geometry)
        integer, intent(in) :: dims, geometry
        type(mesh_t) :: mesh, other
        type(output_info_t) :: info, read_info
        character(:), allocatable :: name

        name = 'round_trip_'//to_text(dims)//to_text(geometry)
        info = some_info()
        call build(mesh, dims, geometry, .false., 1)
        call fill_wild(mesh)
        call write_checkpoint(name, mesh, comm, info, error)
        call expect_none('write_checkpoint')

        call read_checkpoint_head(name, other, comm, read_info, error)
        call expect_none('read_checkpoint_head')
        call expect(other%dims == dims .and. other%geometry == geometry .and. other%n_variables == mesh%n_variables .and. &
                    other%n_species == 2 .and. all(other%boundary == mesh%boundary) .and. &
                    all(other%tree%roots == mesh%tree%roots) .and. other%highest_level == mesh%highest_level .and. &
                    all(same(other%lower, mesh%lower)) .and. all(same(other%upper, mesh%upper)), 'head of '//name)
        call expect_info(read_info, info)

        other%variable_last = .true.
        call give_container(other, size(mesh%local) + 5)
        call read_checkpoint(name, other, comm, read_info, error)
        call expect_none('read_checkpoint')
        call expect_info(read_info, info)
        call expect_same(mesh, other, name)
        call expect(other%n_free == 5 .and. all(other%slot(other%local) > 0) .and. &
                    all(pack(other%slot, other%tree%owner /= comm%rank) == 0), 'slots of '//name)

        call write_checkpoint(name//'_again', other, comm, read_info, error)
        call expect_none('write_checkpoint again')
        if (comm%rank == 0) call expect_same_files(name, name//'_again')
        call container_free(mesh, error)
        call container_free(other, error)
    end subroutine round_trip

    subroutine expect_info(got, wanted)
        type(output_info_t), intent(in) :: got, wanted
        integer :: i

        call expect(same(got%time, wanted%time) .and. same(got%dt, wanted%dt) .and. got%step == wanted%step .and. &
                    got%problem == wanted%problem .and. all(got%species == wanted%species), 'info')
        call expect(size(got%parameters) == size(wanted%parameters) .and. size(got%integers) == size(wanted%integers) .and. &
                    size(got%reals) == size(wanted%reals), 'sizes of lists')
        if (failures > 0) return
        do i = 1, size(wanted%parameters)
            call expect(got%parameters(i)%name == wanted%parameters(i)%name .and. &
                        got%parameters(i)%value == wanted%parameters(i)%value, 'parameter')
        end do
        call expect(all(got%integers%name == wanted%integers%name) .and. all(got%integers%value == wanted%integers%value), &
                    'integers')
        call expect(all(got%reals%name == wanted%reals%name) .and. all(same(got%reals%value, wanted%reals%value)), 'reals')
    end subroutine expect_info

    !> Trees and interiors are the same, to the last bit.
    subroutine expect_same(a, b, what)
        type(mesh_t), intent(in) :: a, b
        character(*), intent(in) :: what
        real(r8), allocatable :: u(:, :, :, :), w(:, :, :, :)
        integer :: l, leaf, zones(3)

        call expect(a%tree%n_leaves == b%tree%n_leaves, 'leaves of '//what)
        if (a%tree%n_leaves /= b%tree%n_leaves) return
        call expect(all(a%tree%level == b%tree%level) .and. all(a%tree%place == b%tree%place) .and. &
                    all(a%tree%key == b%tree%key) .and. all(a%tree%owner == b%tree%owner), 'tree of '//what)
        zones = a%zones()
        allocate (u(a%n_variables, zones(1), zones(2), zones(3)), w(a%n_variables, zones(1), zones(2), zones(3)))
        do l = 1, size(a%local)
            leaf = a%local(l)
            call load_interior(a, a%slot(leaf), u)
            call load_interior(b, b%slot(leaf), w)
            call expect(all(transfer(u, [1_i8]) == transfer(w, [1_i8])), 'zones of '//what)
        end do
    end subroutine expect_same

    !> Faults of a file, or of the mesh to read it into, are reported.
    subroutine refusals()
        type(mesh_t) :: mesh, other
        type(output_info_t) :: info, read_info
        type(file_t) :: file
        integer :: unit

        info = some_info()
        call build(mesh, 2, cartesian, .false., 0)
        call fill_smooth(mesh)
        call write_checkpoint('good', mesh, comm, info, error)
        call expect_none('write_checkpoint')

        call read_checkpoint('missing', mesh, comm, read_info, error)
        call expect_error(exit_system, "'missing'", 'No such file')
        if (comm%rank == 0) then
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
            call expect_none('odd files')
        end if
        call comm%barrier()
        call read_checkpoint('text', mesh, comm, read_info, error)
        call expect_error(exit_system, "'text'", 'HDF5')
        call read_checkpoint('nothing', mesh, comm, read_info, error)
        call expect_error(exit_system, "'nothing'", 'empty')
        call read_checkpoint('.', mesh, comm, read_info, error)
        call expect_error(exit_system, "'.'", 'not a file')
        call read_checkpoint('unfinished', mesh, comm, read_info, error)
        call expect_error(exit_system, "'unfinished'", 'incomplete')
        call read_checkpoint('future', mesh, comm, read_info, error)
        call expect_error(exit_system, "'future'", 'version 99')
        call write_plotfile('drawn_hdf5_plt_cnt_0000', mesh, comm, info, error)
        call expect_none('write_plotfile')
        call read_checkpoint('drawn_hdf5_plt_cnt_0000', mesh, comm, read_info, error)
        call expect_error(exit_system, "'drawn_hdf5_plt_cnt_0000'", 'checkpoint of ember')

        call build(other, 3, cartesian, .false., 0)
        call read_checkpoint('good', other, comm, read_info, error)
        call expect_error(exit_usage, "'good'", '2 dimensions')
        call container_free(other, error)
        call build(other, 2, cylindrical, .false., 0)
        call read_checkpoint('good', other, comm, read_info, error)
        call expect_error(exit_usage, "'good'", 'cartesian geometry')
        call container_free(other, error)
        call refuse_changed('root blocks')
        call refuse_changed('domain')
        call refuse_changed('boundaries')
        call refuse_changed('variables')
        call refuse_changed('level')

        call read_checkpoint_head('good', other, comm, read_info, error)
        call give_container(other, size(mesh%local) - 1)
        call read_checkpoint('good', other, comm, read_info, error)
        call expect_error(exit_usage, "'good'", 'memory holds')
        call expect(index(last_remedy, '--memory') > 0, 'remedy of too few slots')
        call container_free(other, error)

        call write_checkpoint('no/such/folder', mesh, comm, info, error)
        call expect_error(exit_system, "'no/such/folder'", 'No such file or directory')
        call expect(index(last_remedy, "create the folder 'no/such'") > 0, 'remedy of a missing folder')
        call write_plotfile('no/such/folder', mesh, comm, info, error)
        call expect_error(exit_system, "'no/such/folder'", 'No such file or directory')
        call write_checkpoint('.', mesh, comm, info, error)
        call expect_error(exit_system, "'.'", 'not a file')
        call write_checkpoint('/dev/null', mesh, comm, info, error)
        call expect_error(exit_system, "'/dev/null'", 'not a file')
        call container_free(mesh, error)
    end subroutine refusals

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
        call expect_error(exit_usage, "'good'", what)
        call container_free(other, error)
    end subroutine refuse_changed

    !> A truncated checkpoint is refused, wherever it ends.
    subroutine truncations()
        type(mesh_t) :: mesh
        type(output_info_t) :: info
        integer(int8), allocatable :: whole(:)
        integer :: n, step

        call build(mesh, 2, cartesian, .true., 0)
        call fill_smooth(mesh)
        call write_checkpoint('whole', mesh, comm, some_info(), error)
        call get_bytes('whole', whole)
        step = max(1, size(whole)/150)
        n = 0
        do while (n < size(whole))
            call put_bytes_of_all('cut', whole(:n))
            call read_checkpoint('cut', mesh, comm, info, error)
            call expect_error(exit_system, "'cut'", '')
            ! Near the ends byte by byte, more or less.
            if (n < 128 .or. size(whole) - n <= 64) then
                n = n + 7
            else
                n = min(n + step, max(n + 7, size(whole) - 64))
            end if
        end do
        call put_bytes_of_all('cut', whole(:size(whole) - 1))
        call read_checkpoint('cut', mesh, comm, info, error)
        call expect_error(exit_system, "'cut'", 'truncated')
        call put_bytes_of_all('cut', whole)
        call read_checkpoint('cut', mesh, comm, info, error)
        call expect_none('the whole again')
        call container_free(mesh, error)
    end subroutine truncations

    !> A changed bit is detected, or has no effect on the data read; it never crashes the program.
    subroutine damages()
        type(mesh_t) :: mesh, other
        type(output_info_t) :: info
        integer(int8), allocatable :: whole(:), damaged(:)
        integer :: at, n_found, n_tried

        call build(mesh, 2, cylindrical, .false., 0)
        call fill_smooth(mesh)
        call write_checkpoint('whole', mesh, comm, some_info(), error)
        call get_bytes('whole', whole)
        allocate (damaged(size(whole)))
        call build(other, 2, cylindrical, .false., 0)
        n_found = 0
        n_tried = 0
        at = 1
        do while (at <= size(whole))
            damaged = whole
            damaged(at) = ieor(damaged(at), 16_int8)
            call put_bytes_of_all('damaged', damaged)
            call read_checkpoint('damaged', other, comm, info, error)
            n_tried = n_tried + 1
            if (error%failed()) then
                n_found = n_found + 1
                call expect(index(error%message, "'damaged'") > 0, 'name in: '//error%message)
            else
                call expect_same(mesh, other, 'undetected damage of byte '//to_text(at))
                call expect_info(info, some_info())
            end if
            error = error_t()
            at = at + max(1, size(whole)/400)
        end do
        ! Nearly all of a file is zones.
        call expect(n_found > 0.9*n_tried, to_text(n_found)//' of '//to_text(n_tried)//' damages found')
        call container_free(mesh, error)
        call container_free(other, error)
    end subroutine damages

    !> If a file may not grow beyond a limit, as on a full disk, writing ends with an error, whenever the limit is reached;
    !> the previous file is unchanged, and no other file remains.
    subroutine limits()
        type(mesh_t) :: mesh
        type(output_info_t) :: info
        integer(int8), allocatable :: whole(:)
        integer :: i, n

        call build(mesh, 2, cartesian, .false., 0)
        call fill_smooth(mesh)
        call write_checkpoint('kept', mesh, comm, some_info(), error)
        call expect_none('write_checkpoint')
        call get_bytes('kept', whole)
        n = size(whole)
        call put_bytes_of_all('copy', whole)
        do i = 0, 20
            call limit_files(int(i*real(n - 1)/20))
            call write_checkpoint('kept', mesh, comm, some_info(), error)
            call expect_error(exit_system, "'kept'", 'File too large')
            call write_plotfile('kept_hdf5_plt_cnt_0000', mesh, comm, some_info(), error)
            call expect_error(exit_system, "'kept_hdf5_plt_cnt_0000'", 'File too large')
            call limit_files(-1)
            if (comm%rank == 0) then
                call expect_same_files('kept', 'copy')
                call expect_none_of('kept_hdf5_plt_cnt_0000')
                call expect_none_of('kept.part')
            end if
        end do
        call read_checkpoint('kept', mesh, comm, info, error)
        call expect_none('read what was written before a limit')
        call container_free(mesh, error)
        call refused_writes()
        if (comm%rank == 0) call abandon()
    end subroutine limits

    !> Without reserved space, HDF5 itself meets the limit: when it writes rows, or when the file ends. Each time that is an
    !> error, and other files can still be written and read.
    subroutine refused_writes()
        integer, parameter :: rows = 40, row_values = 4096, steps = 40
        type(file_t) :: file
        real(r8) :: values(row_values, rows), back(row_values, rows)
        integer :: i, row, unit

        if (comm%rank == 0) then
            ! An earlier call of this test leaves it.
            open (newunit=unit, file='refused')
            close (unit, status='delete')
        end if
        call random_number(values)
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
                call expect_error(exit_system, "'refused'", 'File too large')
                call expect_none_of('refused')
            end if
        end do
        if (comm%rank > 0) return
        call expect_none('write without a limit')
        call file%open('refused', error)
        call file%read_reals('values', 1, rows, row_values, back, error)
        call file%close()
        call expect_none('read what was written after refused writes')
        call expect(all(same(values, back)), 'values written after refused writes')
    end subroutine refused_writes

    !> A file that was begun and never ended leaves the previous one unchanged.
    subroutine abandon()
        type(file_t) :: file

        call file%create('kept', error)
        call file%put(whole_file, 'format', 'ember checkpoint', error)
        call file%reserve(error)
        call expect_none('begin a file')
        call expect_same_files('kept', 'copy')
        call file%discard()
        call expect_same_files('kept', 'copy')
        call expect_none_of('kept.part')
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

        call build(mesh, 3, cartesian, .false., 0)
        call fill_smooth(mesh)
        do number = 1, 1000
            call write_checkpoint(checkpoint_name('full', number), mesh, comm, some_info(), error)
            if (error%failed()) exit
        end do
        print '(a)', error%message, error%remedy
        call expect(number > 1, 'space for the first')
        call expect_error(exit_system, "'"//checkpoint_name('full', number)//"'", 'No space left on device')
        call expect_none_of(checkpoint_name('full', number))
        call read_checkpoint(checkpoint_name('full', number - 1), mesh, comm, info, error)
        call expect_none('read what was written before the disk was full')
        call container_free(mesh, error)
    end subroutine fill_disk

    ! ---- Plotfiles -------------------------------------------------------------------------------------------------------

    !> For test_plotfile.py: a known state, and the mass that ember computes for it.
    subroutine write_known(dims, geometry, name)
        integer, intent(in) :: dims, geometry
        character(*), intent(in) :: name
        type(mesh_t) :: mesh

        call build(mesh, dims, geometry, .false., 0)
        call fill_smooth(mesh)
        call write_plotfile(plotfile_name(name, 0), mesh, comm, some_info(), error)
        call expect_none('write_plotfile')
        call write_plotfile(plotfile_name(name//'_single', 0), mesh, comm, some_info(), error, single=.true.)
        call expect_none('write_plotfile')
        call write_checkpoint(checkpoint_name(name, 0), mesh, comm, some_info(), error)
        call expect_none('write_checkpoint')
        if (comm%n_ranks == 1) print '(2a, es24.16, i6)', name, ' ', mass(mesh), mesh%tree%n_leaves
        call container_free(mesh, error)
    end subroutine write_known

    !> The mass of this rank's leaves, per radian in cylindrical geometry.
    real(r8) function mass(mesh)
        type(mesh_t), intent(in) :: mesh
        real(r8), allocatable :: u(:, :, :, :)
        real(r8) :: volume(-1:block_zones + 2)
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
    subroutine plotfiles()
        call plotted(2, cartesian)
        call plotted(2, cylindrical)
        call plotted(3, cartesian)
    end subroutine plotfiles

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
        call build(mesh, dims, geometry, .true., 0)
        call fill_smooth(mesh)
        call write_plotfile(name, mesh, comm, some_info(), error)
        call expect_none('write_plotfile')
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
                call expect(all(same(low(1, :, node), mesh%block_corner(leaf))), 'corner of a leaf')
                if (mesh%slot(leaf) > 0) then
                    call load_interior(mesh, mesh%slot(leaf), u)
                    call expect(all(same(u(v_dens, :, :, :), dens)), 'zones of a leaf')
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
        call expect_none('read a plotfile')
        call expect(leaf == mesh%tree%n_leaves, 'leaves of a plotfile')
        call expect(abs(root_mass/sum(all_mass) - 1.0_r8) < 1.0e-13_r8, 'mass of the roots')
        call container_free(mesh, error)
    end subroutine plotted

    ! ---- Files and checks ------------------------------------------------------------------------------------------------

    !> Neither the file nor its temporary file exists.
    subroutine expect_none_of(name)
        character(*), intent(in) :: name
        logical :: whole, part

        inquire (file=name, exist=whole)
        inquire (file=name//'.part', exist=part)
        call expect(.not. whole .and. .not. part, name//' exists')
    end subroutine expect_none_of

    subroutine get_bytes(name, bytes)
        character(*), intent(in) :: name
        integer(int8), allocatable, intent(out) :: bytes(:)
        integer :: unit, length

        open (newunit=unit, file=name, access='stream', form='unformatted', action='read', status='old')
        inquire (unit=unit, size=length)
        allocate (bytes(length))
        read (unit) bytes
        close (unit)
    end subroutine get_bytes

    subroutine put_bytes(name, bytes)
        character(*), intent(in) :: name
        integer(int8), intent(in) :: bytes(:)
        integer :: unit

        open (newunit=unit, file=name, access='stream', form='unformatted', action='write', status='replace')
        write (unit) bytes
        close (unit)
    end subroutine put_bytes

    subroutine put_bytes_of_all(name, bytes)
        character(*), intent(in) :: name
        integer(int8), intent(in) :: bytes(:)

        call comm%barrier()
        if (comm%rank == 0) call put_bytes(name, bytes)
        call comm%barrier()
    end subroutine put_bytes_of_all

    subroutine expect_same_files(a, b)
        character(*), intent(in) :: a, b
        integer(int8), allocatable :: bytes_a(:), bytes_b(:)
        logical :: same

        call get_bytes(a, bytes_a)
        call get_bytes(b, bytes_b)
        same = size(bytes_a) == size(bytes_b)
        if (same) same = all(bytes_a == bytes_b)
        call expect(same, 'bytes of '//a)
    end subroutine expect_same_files

    !> Equal to the last bit.
    elemental logical function same(a, b)
        real(r8), intent(in) :: a, b

        same = .not. (a < b .or. a > b)
    end function same

    subroutine expect_none(what)
        character(*), intent(in) :: what

        if (error%failed()) call expect(.false., what//': '//error%message)
        error = error_t()
    end subroutine expect_none

    !> Expect an error with this code, a message that contains both texts, and a remedy.
    subroutine expect_error(code, text, further)
        integer, intent(in) :: code
        character(*), intent(in) :: text, further
        character(:), allocatable :: message

        message = ''
        if (allocated(error%message)) message = error%message
        call expect(error%code == code .and. index(message, text) > 0 .and. index(message, further) > 0, &
                    'error '//to_text(error%code)//' without '//text//' '//further//': '//message)
        if (error%failed()) call expect(len(error%remedy) > 0, 'remedy of '//message)
        last_remedy = ''
        if (allocated(error%remedy)) last_remedy = error%remedy
        error = error_t()
    end subroutine expect_error

    subroutine expect(ok, what)
        logical, intent(in) :: ok
        character(*), intent(in) :: what

        if (ok) return
        failures = failures + 1
        print '(3a, i0)', 'wrong: ', what, ', rank ', comm%rank
    end subroutine expect

end program test_output
