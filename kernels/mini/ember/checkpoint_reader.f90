!> Reading of checkpoints, by any number of ranks and into either layout.
module ember_checkpoint_reader
    use ember_checkpoint_format, only: bunch_bytes, geometry_name, head_t, refuse
    use ember_checkpoint_head, only: open_checkpoint, share_head, share_info
    use ember_container, only: block_bytes, store_interior
    use ember_mesh, only: first_species, mesh_t, periodic
    use ember_output_info, only: output_info_t
    use ember_parallel, only: comm_t
    use ember_parents, only: slots_needed
    use ember_tree, only: tree_t
    use pw_error, only: error_t, exit_usage
    use pw_hdf5, only: file_t
    use pw_kinds, only: i8, r8
    use pw_text, only: to_text
    implicit none
    private

    public :: read_checkpoint_head, read_checkpoint

contains

    !> Read everything from the checkpoint `path` except its zones, called by all ranks: `info`, and the parts of the mesh
    !> needed before its container is created: shape of blocks, dims, geometry, domain, boundaries, levels, variables, and in its
    !> tree the root blocks.
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
        call mesh%set_shape(head%block, head%guards)
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
        else if (head%block /= mesh%block) then
            call differ('blocks of '//to_text(head%block)//' zones', to_text(mesh%block))
        else if (head%guards /= mesh%guards) then
            call differ(to_text(head%guards)//' guard cells', to_text(mesh%guards))
        else if (head%n_variables /= mesh%n_used()) then
            call differ(to_text(head%n_variables)//' variables', to_text(mesh%n_used()))
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
        integer, allocatable :: needed(:), owner(:)
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
        allocate (needed(0:comm%n_ranks - 1), source=slots_needed(tree, mesh%parents, comm%n_ranks))
        if (needed(comm%rank) > mesh%capacity) then
            ! --memory is the total of all ranks, and the largest share decides.
            bytes = maxval(needed)*comm%n_ranks*block_bytes(mesh)
            call error%raise(exit_usage, "the checkpoint '"//path//"' has "//to_text(sum(needed))//' blocks, of which rank '// &
                             to_text(comm%rank)//' gets '//to_text(needed(comm%rank))//', but its memory holds only '// &
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
        values = mesh%n_used()*product(zones)
        n = max(1, bunch_bytes/(8*values))
        allocate (bunch(mesh%n_used(), zones(1), zones(2), zones(3), n), source=0.0_r8)
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

end module ember_checkpoint_reader
