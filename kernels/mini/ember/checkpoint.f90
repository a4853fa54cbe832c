!> Checkpoints: everything that a run needs to continue bit by bit as if never interrupted (docs/ember-files.md).
!>
!> A checkpoint holds the variables of the leaves without guard cells, the same in both layouts, the tree, time and step, and
!> the named values of `output_info_t`. It can be read by another number of ranks and threads, with the other layout and with
!> another page policy.
module ember_checkpoint
    use, intrinsic :: ieee_arithmetic, only: ieee_is_finite
    use ember_container, only: block_bytes, load_interior, store_interior
    use pw_hdf5, only: file_t, kind_double, kind_integer, whole_file
    use ember_mesh, only: block_zones, cartesian, cylindrical, first_species, mesh_t, outflow, periodic, reflecting
    use ember_output_info, only: longest, name_length, output_info_t, variable_names
    use ember_parallel, only: comm_t
    use ember_tree, only: tree_t
    use pw_error, only: error_t, exit_system, exit_usage
    use pw_kinds, only: i8, r8
    use pw_text, only: to_text
    implicit none
    private

    public :: write_checkpoint, read_checkpoint, read_checkpoint_head

    character(*), parameter :: format_name = 'ember checkpoint'
    integer, parameter :: format_version = 1
    integer, parameter :: bunch_bytes = 1024**2
    integer, parameter :: marker = 1     ! of a complete file
    ! Ember never writes values above these.
    integer, parameter :: max_variables = 256, max_names = 4096, max_text = 65536

    !> The description of the mesh in a checkpoint.
    type :: head_t
        integer :: dims = 0, roots(3) = 0, geometry = 0, boundary(2, 3) = 0, levels(2) = 0, n_variables = 0, n_leaves = 0
        real(r8) :: lower(3) = 0.0_r8, upper(3) = 0.0_r8
    end type head_t

contains

    !> Write the checkpoint `path`, called by all ranks; rank 0 writes. An error names the file and what to do; the new file
    !> is then removed, and an older file of that name, like all others, is unchanged.
    subroutine write_checkpoint(path, mesh, comm, info, error)
        character(*), intent(in) :: path
        type(mesh_t), intent(in) :: mesh
        type(comm_t), intent(in) :: comm
        type(output_info_t), intent(in) :: info
        type(error_t), intent(inout) :: error
        type(file_t) :: file
        type(output_info_t) :: whole

        whole = info
        call whole%complete()
        if (comm%rank == 0) then
            call file%create(path, error)
            call write_head(file, mesh, whole, error)
            call file%define('blocks', kind_double, [mesh%n_variables, mesh%zones(), mesh%tree%n_leaves], error)
            call file%reserve(error)
        end if
        call comm%agree(error)
        if (error%failed()) then
            call file%discard()
            return
        end if
        call write_blocks(file, mesh, comm, error)
        if (comm%rank == 0) then
            call file%put(whole_file, 'complete', marker, error)
            call file%commit(error)
        end if
        call comm%agree(error)
    end subroutine write_checkpoint

    subroutine write_head(file, mesh, info, error)
        type(file_t), intent(inout) :: file
        type(mesh_t), intent(in) :: mesh
        type(output_info_t), intent(in) :: info
        type(error_t), intent(inout) :: error
        character(name_length) :: names(mesh%n_variables)
        integer :: n

        call variable_names(mesh%n_variables, info, names)
        n = mesh%tree%n_leaves
        call file%put(whole_file, 'format', format_name, error)
        call file%put(whole_file, 'format version', format_version, error)
        call file%put(whole_file, 'problem', info%problem, error)
        call file%put(whole_file, 'time', info%time, error)
        call file%put(whole_file, 'dt', info%dt, error)
        call file%put(whole_file, 'step', info%step, error)
        call file%put(whole_file, 'dims', mesh%dims, error)
        call file%put(whole_file, 'block zones', block_zones, error)
        call file%put(whole_file, 'roots', mesh%tree%roots, error)
        call file%put(whole_file, 'geometry', geometry_name(mesh%geometry), error)
        call file%put(whole_file, 'lower', mesh%lower, error)
        call file%put(whole_file, 'upper', mesh%upper, error)
        call file%put(whole_file, 'boundaries', boundary_names(mesh%boundary), error)
        call file%put(whole_file, 'levels', [mesh%lowest_level, mesh%highest_level], error)
        call file%put(whole_file, 'leaves', n, error)
        call file%put(whole_file, 'variables', names, error)
        call file%define('level', kind_integer, [n], error)
        call file%write_integers('level', 1, n, 1, mesh%tree%level, error)
        call file%define('place', kind_integer, [3, n], error)
        call file%write_integers('place', 1, n, 3, mesh%tree%place, error)
        call write_names(file, info, longest(info%parameters), error)
    end subroutine write_head

    pure function geometry_name(geometry) result(name)
        integer, intent(in) :: geometry
        character(:), allocatable :: name

        name = trim(merge('cylindrical', 'cartesian  ', geometry == cylindrical))
    end function geometry_name

    !> Of the lower and the upper end of each direction.
    pure function boundary_names(boundary) result(names)
        integer, intent(in) :: boundary(2, 3)
        character(10) :: names(6)
        integer :: d

        do d = 1, 3
            names(2*d - 1) = boundary_name(boundary(1, d))
            names(2*d) = boundary_name(boundary(2, d))
        end do
    end function boundary_names

    pure character(10) function boundary_name(boundary) result(name)
        integer, intent(in) :: boundary

        select case (boundary)
        case (reflecting)
            name = 'reflecting'
        case (outflow)
            name = 'outflow'
        case default
            name = 'periodic'
        end select
    end function boundary_name

    !> The named values, per kind an attribute with the names and one with the values.
    subroutine write_names(file, info, length, error)
        type(file_t), intent(inout) :: file
        type(output_info_t), intent(in) :: info
        integer, intent(in) :: length
        type(error_t), intent(inout) :: error
        character(length) :: texts(size(info%parameters))
        integer :: i

        do i = 1, size(texts)
            texts(i) = info%parameters(i)%value
        end do
        if (size(texts) > 0) then
            call file%put(whole_file, 'parameters', info%parameters%name, error)
            call file%put(whole_file, 'parameter values', texts, error)
        end if
        if (size(info%integers) > 0) then
            call file%put(whole_file, 'integers', info%integers%name, error)
            call file%put(whole_file, 'integer values', info%integers%value, error)
        end if
        if (size(info%reals) > 0) then
            call file%put(whole_file, 'reals', info%reals%name, error)
            call file%put(whole_file, 'real values', info%reals%value, error)
        end if
    end subroutine write_names

    !> The leaves' variables, in groups of leaves. After an error rank 0 still receives what the others
    !> send.
    subroutine write_blocks(file, mesh, comm, error)
        type(file_t), intent(inout) :: file
        type(mesh_t), intent(in) :: mesh
        type(comm_t), intent(in) :: comm
        type(error_t), intent(inout) :: error
        real(r8), allocatable, target :: bunch(:, :, :, :, :)
        real(r8), pointer, contiguous :: flat(:)
        integer :: leaf, n, values, owner, zones(3)

        zones = mesh%zones()
        values = mesh%n_variables*product(zones)
        allocate (bunch(mesh%n_variables, zones(1), zones(2), zones(3), max(1, bunch_bytes/(8*values))))
        n = 0
        do leaf = 1, mesh%tree%n_leaves
            owner = mesh%tree%owner(leaf)
            flat(1:values) => bunch(:, :, :, :, n + 1)
            if (owner == comm%rank) call load_interior(mesh, mesh%slot(leaf), bunch(:, :, :, :, n + 1))
            if (comm%rank /= 0) then
                if (owner == comm%rank) call comm%send(0, flat)
                cycle
            end if
            if (owner /= 0) call comm%receive(owner, flat)
            n = n + 1
            if (n < size(bunch, 5) .and. leaf < mesh%tree%n_leaves) cycle
            call file%write_reals('blocks', leaf - n + 1, n, values, bunch, error)
            n = 0
        end do
    end subroutine write_blocks

    !> Read everything from the checkpoint `path` except its zones, called by all ranks: `info`, and the parts of the mesh
    !> needed before its container is created: dims, geometry, domain, boundaries, levels, variables, and in its tree the
    !> root blocks.
    subroutine read_checkpoint_head(path, mesh, comm, info, error)
        character(*), intent(in) :: path
        type(mesh_t), intent(inout) :: mesh
        type(comm_t), intent(in) :: comm
        type(output_info_t), intent(out) :: info
        type(error_t), intent(inout) :: error
        type(file_t) :: file
        type(head_t) :: head

        if (comm%rank == 0) call open_checkpoint(path, file, head, info, error)
        call file%close()
        call comm%agree(error)
        if (error%failed()) return
        call share_head(comm, head)
        call share_info(comm, info)
        mesh%dims = head%dims
        mesh%geometry = head%geometry
        mesh%lower = head%lower
        mesh%upper = head%upper
        mesh%boundary = head%boundary
        mesh%lowest_level = head%levels(1)
        mesh%highest_level = head%levels(2)
        mesh%n_variables = head%n_variables
        mesh%n_species = head%n_variables - first_species + 1
        mesh%tree%dims = head%dims
        mesh%tree%roots = head%roots
        mesh%tree%periodic = head%boundary(1, :) == periodic
    end subroutine read_checkpoint_head

    !> Read the checkpoint `path` into `mesh`, called by all ranks: its tree, distributed over the present ranks, and the
    !> interior of its blocks; guard cells are not filled. The mesh must equal that of the checkpoint
    !> (`read_checkpoint_head` ensures it) and have its container; its slots are assigned again. Errors, which name the
    !> file: exit_system if it is incomplete or not an ember checkpoint; exit_usage if the mesh differs, or a rank's
    !> container has too few slots.
    subroutine read_checkpoint(path, mesh, comm, info, error)
        character(*), intent(in) :: path
        type(mesh_t), intent(inout) :: mesh
        type(comm_t), intent(in) :: comm
        type(output_info_t), intent(out) :: info
        type(error_t), intent(inout) :: error
        type(file_t) :: file
        type(head_t) :: head
        integer, allocatable :: level(:), place(:, :)

        if (comm%rank == 0) then
            call open_checkpoint(path, file, head, info, error)
            call compare(path, mesh, head, error)
        end if
        call comm%agree(error)
        if (.not. error%failed()) then
            call share_head(comm, head)
            call share_info(comm, info)
            call read_places(path, file, head, comm, level, place, error)
        end if
        if (.not. error%failed()) then
            call plant(path, mesh, comm, level, place, error)
            call comm%agree(error)
        end if
        if (.not. error%failed()) then
            call read_blocks(file, mesh, comm, error)
            call comm%agree(error)
        end if
        call file%close()
    end subroutine read_checkpoint

    !> Open a file on rank 0 and read everything except tree and zones; an error unless it is a complete checkpoint of a
    !> supported version.
    subroutine open_checkpoint(path, file, head, info, error)
        character(*), intent(in) :: path
        type(file_t), intent(inout) :: file
        type(head_t), intent(out) :: head
        type(output_info_t), intent(out) :: info
        type(error_t), intent(inout) :: error
        character(:), allocatable :: text
        integer :: version, zones, complete

        call file%open(path, error)
        if (error%failed()) return
        if (.not. file%has_attribute(whole_file, 'format')) then
            call refuse(path, 'it is an HDF5 file, but not a checkpoint of ember', error)
            return
        end if
        call file%get(whole_file, 'format', text, error)
        if (error%failed()) return
        if (text /= format_name) then
            call refuse(path, 'it is an HDF5 file, but not a checkpoint of ember', error)
            return
        end if
        version = 0
        call file%get(whole_file, 'format version', version, error)
        if (.not. error%failed() .and. version /= format_version) then
            call refuse(path, 'its format has version '//to_text(version)//', but this program supports '// &
                        to_text(format_version), error)
        end if
        if (error%failed()) return
        complete = 0
        if (file%has_attribute(whole_file, 'complete')) call file%get(whole_file, 'complete', complete, error)
        if (complete /= marker) call refuse(path, 'it is incomplete', error)

        zones = 0
        call file%get(whole_file, 'block zones', zones, error)
        call file%get(whole_file, 'time', info%time, error)
        call file%get(whole_file, 'dt', info%dt, error)
        call file%get(whole_file, 'step', info%step, error)
        call file%get(whole_file, 'problem', info%problem, error)
        call file%get(whole_file, 'dims', head%dims, error)
        call file%get(whole_file, 'roots', head%roots, error)
        call file%get(whole_file, 'lower', head%lower, error)
        call file%get(whole_file, 'upper', head%upper, error)
        call file%get(whole_file, 'levels', head%levels, error)
        call file%get(whole_file, 'leaves', head%n_leaves, error)
        call read_words(file, head, error)
        call read_species(path, file, head, info, error)
        call read_names(file, info, error)
        if (error%failed()) return
        if (zones /= block_zones) then
            call refuse(path, 'its blocks have '//to_text(zones)//' zones per direction, but those of this program '// &
                        to_text(block_zones), error)
        else if (head%dims < 2 .or. head%dims > 3 .or. head%n_leaves < 1 .or. any(head%roots < 1) .or. &
                 head%n_variables < first_species - 1 .or. any(head%boundary == 0) .or. head%geometry == 0 .or. &
                 .not. all(ieee_is_finite(head%lower)) .or. .not. all(ieee_is_finite(head%upper))) then
            call refuse(path, 'its description of the mesh is invalid', error)
        else
            call check_shapes(path, file, head, error)
        end if
    end subroutine open_checkpoint

    !> Geometry and boundaries; 0 for unknown words.
    subroutine read_words(file, head, error)
        type(file_t), intent(in) :: file
        type(head_t), intent(inout) :: head
        type(error_t), intent(inout) :: error
        character(:), allocatable :: text
        character(10) :: names(6)
        integer :: i, b, d, side

        names = ''
        call file%get(whole_file, 'geometry', text, error)
        call file%get(whole_file, 'boundaries', names, error)
        if (error%failed()) return
        do i = cartesian, cylindrical
            if (text == geometry_name(i)) head%geometry = i
        end do
        do d = 1, 3
            do side = 1, 2
                do b = periodic, outflow
                    if (names(2*d - 2 + side) == boundary_name(b)) head%boundary(side, d) = b
                end do
            end do
        end do
    end subroutine read_words

    !> The number of variables, and the species among them.
    subroutine read_species(path, file, head, info, error)
        character(*), intent(in) :: path
        type(file_t), intent(in) :: file
        type(head_t), intent(inout) :: head
        type(output_info_t), intent(inout) :: info
        type(error_t), intent(inout) :: error
        character(name_length) :: names(max_variables), expected(max_variables)
        integer(i8) :: n
        integer :: length

        call file%attribute_size(whole_file, 'variables', n, length, error)
        if (error%failed()) return
        if (n < first_species - 1 .or. n > max_variables) then
            call refuse(path, 'its variables differ from those of this program', error)
            return
        end if
        head%n_variables = int(n)
        call file%get(whole_file, 'variables', names(:n), error)
        if (error%failed()) return
        info%species = names(first_species:n)
        call variable_names(head%n_variables, info, expected(:n))
        if (any(names(:n) /= expected(:n))) call refuse(path, 'its variables differ from those of this program', error)
    end subroutine read_species

    !> The named values.
    subroutine read_names(file, info, error)
        type(file_t), intent(in) :: file
        type(output_info_t), intent(inout) :: info
        type(error_t), intent(inout) :: error
        integer :: n, length

        call info%complete()
        call measure('parameters', 'parameter values')
        if (n > 0) call read_texts(file, n, length, info, error)
        call measure('integers', 'integer values')
        if (n > 0) then
            deallocate (info%integers)
            allocate (info%integers(n))
            call file%get(whole_file, 'integers', info%integers%name, error)
            call file%get(whole_file, 'integer values', info%integers%value, error)
        end if
        call measure('reals', 'real values')
        if (n > 0) then
            deallocate (info%reals)
            allocate (info%reals(n))
            call file%get(whole_file, 'reals', info%reals%name, error)
            call file%get(whole_file, 'real values', info%reals%value, error)
        end if

    contains

        !> Number of values, at most max_names, and length of texts.
        subroutine measure(names, values)
            character(*), intent(in) :: names, values
            integer(i8) :: stored

            n = 0
            length = 1
            if (.not. file%has_attribute(whole_file, names)) return
            call file%attribute_size(whole_file, values, stored, length, error)
            n = int(min(stored, int(max_names, i8)))
            length = min(max(1, length), max_text)
        end subroutine measure

    end subroutine read_names

    subroutine read_texts(file, n, length, info, error)
        type(file_t), intent(in) :: file
        integer, intent(in) :: n, length
        type(output_info_t), intent(inout) :: info
        type(error_t), intent(inout) :: error
        character(name_length), allocatable :: names(:)
        character(length), allocatable :: texts(:)
        integer :: i

        allocate (names(n), texts(n))
        call file%get(whole_file, 'parameters', names, error)
        call file%get(whole_file, 'parameter values', texts, error)
        if (error%failed()) return
        deallocate (info%parameters)
        allocate (info%parameters(n))
        do i = 1, n
            info%parameters(i)%name = names(i)
            info%parameters(i)%value = trim(texts(i))
        end do
    end subroutine read_texts

    !> Whether tree and zones have the sizes given in the head.
    subroutine check_shapes(path, file, head, error)
        character(*), intent(in) :: path
        type(file_t), intent(in) :: file
        type(head_t), intent(in) :: head
        type(error_t), intent(inout) :: error
        integer :: zones(3)

        zones = block_zones
        if (head%dims == 2) zones(3) = 1
        call expect('level', [head%n_leaves])
        call expect('place', [3, head%n_leaves])
        call expect('blocks', [head%n_variables, zones, head%n_leaves])

    contains

        subroutine expect(name, expected)
            character(*), intent(in) :: name
            integer, intent(in) :: expected(:)
            integer(i8), allocatable :: shape(:)
            logical :: same

            call file%shape(name, shape, error)
            if (error%failed()) return
            same = size(shape) == size(expected)
            if (same) same = all(shape == expected)
            if (.not. same) call refuse(path, "'"//name//"' has a size that differs from its head", error)
        end subroutine expect

    end subroutine check_shapes

    !> Whether the mesh of this run is that of the checkpoint.
    subroutine compare(path, mesh, head, error)
        character(*), intent(in) :: path
        type(mesh_t), intent(in) :: mesh
        type(head_t), intent(in) :: head
        type(error_t), intent(inout) :: error

        if (head%dims /= mesh%dims) then
            call differ(to_text(head%dims)//' dimensions', to_text(mesh%dims))
        else if (head%geometry /= mesh%geometry) then
            call differ(geometry_name(head%geometry)//' geometry', geometry_name(mesh%geometry))
        else if (head%n_variables /= mesh%n_variables) then
            call differ(to_text(head%n_variables)//' variables', to_text(mesh%n_variables))
        else if (any(head%roots /= mesh%tree%roots)) then
            call differ(triple(head%roots)//' root blocks', triple(mesh%tree%roots))
        else if (any(abs(head%lower - mesh%lower) > 0.0_r8) .or. any(abs(head%upper - mesh%upper) > 0.0_r8)) then
            call differ('a domain from '//point(head%lower)//' to '//point(head%upper), &
                        'one from '//point(mesh%lower)//' to '//point(mesh%upper))
        else if (any(head%boundary(:, :head%dims) /= mesh%boundary(:, :head%dims))) then
            call differ('other boundaries', 'those of its parameters')
        end if

    contains

        subroutine differ(theirs, ours)
            character(*), intent(in) :: theirs, ours

            if (error%failed()) return
            call error%raise(exit_usage, "the checkpoint '"//path//"' has "//theirs//', but this run has '//ours, &
                             'read_checkpoint', 'restart with the parameters of the run that wrote it')
        end subroutine differ

        pure function triple(numbers) result(text)
            integer, intent(in) :: numbers(3)
            character(:), allocatable :: text

            text = to_text(numbers(1))//' x '//to_text(numbers(2))//' x '//to_text(numbers(3))
        end function triple

        pure function point(x) result(text)
            real(r8), intent(in) :: x(3)
            character(:), allocatable :: text

            text = '('//to_text(x(1), 'es12.5')//', '//to_text(x(2), 'es12.5')//', '//to_text(x(3), 'es12.5')//')'
        end function point

    end subroutine compare

    !> Read levels and positions of the leaves, for all ranks.
    subroutine read_places(path, file, head, comm, level, place, error)
        character(*), intent(in) :: path
        type(file_t), intent(in) :: file
        type(head_t), intent(in) :: head
        type(comm_t), intent(in) :: comm
        integer, allocatable, intent(out) :: level(:), place(:, :)
        type(error_t), intent(inout) :: error
        integer :: status
        integer, allocatable :: flat(:)

        allocate (level(head%n_leaves), flat(3*head%n_leaves), stat=status)
        if (status /= 0) call refuse(path, 'no memory is left for its '//to_text(head%n_leaves)//' leaves', error)
        if (comm%rank == 0) then
            call file%read_integers('level', 1, head%n_leaves, 1, level, error)
            call file%read_integers('place', 1, head%n_leaves, 3, flat, error)
        end if
        call comm%agree(error)
        if (error%failed()) return
        call comm%broadcast(level)
        call comm%broadcast(flat)
        place = reshape(flat, [3, head%n_leaves])
    end subroutine read_places

    !> Build the tree, distribute it over the ranks, and assign a slot to each leaf of this rank.
    subroutine plant(path, mesh, comm, level, place, error)
        character(*), intent(in) :: path
        type(mesh_t), intent(inout) :: mesh
        type(comm_t), intent(in) :: comm
        integer, intent(in) :: level(:), place(:, :)
        type(error_t), intent(inout) :: error
        type(error_t) :: wrong
        type(tree_t) :: tree
        integer, allocatable :: owner(:)
        integer(i8) :: bytes
        integer :: i

        call tree%restore(mesh%dims, mesh%tree%roots, mesh%boundary(1, :) == periodic, level, place, wrong)
        if (wrong%failed()) then
            call refuse(path, wrong%message, error)
            return
        end if
        if (maxval(level) > mesh%highest_level) then
            call error%raise(exit_usage, "the checkpoint '"//path//"' has blocks of level "//to_text(maxval(level))// &
                             ', but this run refines only up to level '//to_text(mesh%highest_level), 'read_checkpoint', &
                             'restart with --highest-level of the run that wrote it')
            return
        end if
        call tree%partition(comm%n_ranks, owner)
        tree%owner = owner
        mesh%tree = tree
        mesh%rank = comm%rank
        mesh%n_ranks = comm%n_ranks
        call mesh%note_owners()
        if (size(mesh%local) > mesh%capacity) then
            ! --memory is the total of all ranks, and the largest share decides.
            bytes = (tree%n_leaves + comm%n_ranks - 1)/comm%n_ranks*comm%n_ranks*block_bytes(mesh)
            call error%raise(exit_usage, "the checkpoint '"//path//"' has "//to_text(tree%n_leaves)//' blocks, of which rank '// &
                             to_text(comm%rank)//' gets '//to_text(size(mesh%local))//', but its memory holds only '// &
                             to_text(mesh%capacity), 'read_checkpoint', 'use at least --memory '// &
                             to_text((bytes + 1024_i8**2 - 1)/1024_i8**2)//'MiB')
            return
        end if
        mesh%free = [(mesh%capacity - i, i=0, mesh%capacity - 1)]
        mesh%n_free = mesh%capacity
        if (allocated(mesh%slot)) deallocate (mesh%slot)
        allocate (mesh%slot(tree%n_leaves), source=0)
        do i = 1, size(mesh%local)
            mesh%slot(mesh%local(i)) = mesh%take_slot()
        end do
    end subroutine plant

    !> The leaves' variables. After an error rank 0 still sends what the others wait for.
    subroutine read_blocks(file, mesh, comm, error)
        type(file_t), intent(in) :: file
        type(mesh_t), intent(inout) :: mesh
        type(comm_t), intent(in) :: comm
        type(error_t), intent(inout) :: error
        real(r8), allocatable, target :: bunch(:, :, :, :, :)
        real(r8), pointer, contiguous :: flat(:)
        integer :: leaf, first, n, at, values, owner, zones(3)

        zones = mesh%zones()
        values = mesh%n_variables*product(zones)
        n = max(1, bunch_bytes/(8*values))
        allocate (bunch(mesh%n_variables, zones(1), zones(2), zones(3), n), source=0.0_r8)
        first = 1
        do leaf = 1, mesh%tree%n_leaves
            owner = mesh%tree%owner(leaf)
            at = leaf - first + 1
            if (comm%rank == 0) then
                if (at > size(bunch, 5)) then
                    first = leaf
                    at = 1
                end if
                if (at == 1) then
                    n = min(size(bunch, 5), mesh%tree%n_leaves - leaf + 1)
                    call file%read_reals('blocks', leaf, n, values, bunch, error)
                end if
            else
                at = 1
            end if
            flat(1:values) => bunch(:, :, :, :, at)
            if (comm%rank == 0) then
                if (owner /= 0) call comm%send(owner, flat)
            else if (owner == comm%rank) then
                call comm%receive(0, flat)
            end if
            if (owner == comm%rank) call store_interior(mesh, mesh%slot(leaf), bunch(:, :, :, :, at))
        end do
    end subroutine read_blocks

    !> Send rank 0's head to all ranks.
    subroutine share_head(comm, head)
        type(comm_t), intent(in) :: comm
        type(head_t), intent(inout) :: head
        integer :: integers(15)
        real(r8) :: reals(6)

        integers = [head%dims, head%roots, head%geometry, reshape(head%boundary, [6]), head%levels, head%n_variables, &
                    head%n_leaves]
        reals = [head%lower, head%upper]
        call comm%broadcast(integers)
        call comm%broadcast(reals)
        head%dims = integers(1)
        head%roots = integers(2:4)
        head%geometry = integers(5)
        head%boundary = reshape(integers(6:11), [2, 3])
        head%levels = integers(12:13)
        head%n_variables = integers(14)
        head%n_leaves = integers(15)
        head%lower = reals(:3)
        head%upper = reals(4:)
    end subroutine share_head

    !> Send rank 0's info to all ranks: the numbers, and all texts in one, each followed by a null character.
    subroutine share_info(comm, info)
        type(comm_t), intent(in) :: comm
        type(output_info_t), intent(inout) :: info
        character(:), allocatable :: texts
        integer :: counts(5), i, at
        integer(i8), allocatable :: long(:)
        real(r8), allocatable :: number(:)

        call info%complete()
        texts = info%problem//achar(0)
        do i = 1, size(info%species)
            texts = texts//trim(info%species(i))//achar(0)
        end do
        do i = 1, size(info%parameters)
            texts = texts//trim(info%parameters(i)%name)//achar(0)//info%parameters(i)%value//achar(0)
        end do
        do i = 1, size(info%integers)
            texts = texts//trim(info%integers(i)%name)//achar(0)
        end do
        do i = 1, size(info%reals)
            texts = texts//trim(info%reals(i)%name)//achar(0)
        end do
        counts = [info%step, size(info%species), size(info%parameters), size(info%integers), size(info%reals)]
        call comm%broadcast(counts)
        call comm%broadcast(texts)
        allocate (long(counts(4)), number(counts(5) + 2))
        if (comm%rank == 0) then
            long = info%integers%value
            number = [info%time, info%dt, info%reals%value]
        end if
        call comm%broadcast(long)
        call comm%broadcast(number)
        if (comm%rank == 0) return

        info = output_info_t()
        allocate (info%species(counts(2)), info%parameters(counts(3)), info%integers(counts(4)), info%reals(counts(5)))
        info%step = counts(1)
        info%time = number(1)
        info%dt = number(2)
        at = 1
        info%problem = next()
        do i = 1, counts(2)
            info%species(i) = next()
        end do
        do i = 1, counts(3)
            info%parameters(i)%name = next()
            info%parameters(i)%value = next()
        end do
        do i = 1, counts(4)
            info%integers(i)%name = next()
            info%integers(i)%value = long(i)
        end do
        do i = 1, counts(5)
            info%reals(i)%name = next()
            info%reals(i)%value = number(i + 2)
        end do

    contains

        !> The text at position `at`.
        function next() result(text)
            character(:), allocatable :: text
            integer :: length

            length = index(texts(at:), achar(0)) - 1
            text = texts(at:at + length - 1)
            at = at + length + 1
        end function next

    end subroutine share_info

    !> Raise the error for an unusable file.
    subroutine refuse(path, reason, error)
        character(*), intent(in) :: path, reason
        type(error_t), intent(inout) :: error

        if (error%failed()) return
        call error%raise(exit_system, "cannot read the checkpoint '"//path//"': "//reason, 'read_checkpoint', &
                         'use another checkpoint')
    end subroutine refuse

end module ember_checkpoint
