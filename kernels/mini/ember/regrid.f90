!> Which blocks to refine, and the change of the mesh: zones move from the leaves of the old tree to those of the new one,
!> between levels and between ranks.
!>
!> A new leaf is an old leaf, a child of one or the parent of some; its rank is that of the new partition. Data for another
!> rank is sent once and in its smallest form: the interior of a block that is kept, the means of a block that becomes part
!> of its parent, and of a block that is refined the star of each octant (ember_container). The receiver copies or computes
!> the new block from it. Only the new leaves need slots, so that every mesh whose new leaves fit is possible; whether they
!> fit is known to all ranks before anything moves. Blocks are sent in rounds, whose buffers are small compared with the
!> container.
module ember_regrid
    use ember_container, only: unpack_box
    use ember_mesh, only: mesh_t
    use ember_octants, only: interior, octant_box, octant_of, octant_values
    use ember_parallel, only: comm_t
    use ember_parents, only: slots_needed
    use ember_parcels, only: list_parcels, parcel_t, send_parcels
    use ember_prolongation, only: pack_star, prolong_star, star_size
    use ember_restriction, only: restrict_box
    use ember_tree, only: child, kept, parent, tree_t
    use ember_tree_adapt, only: adapt_tree
    use pw_error, only: error_t, exit_usage
    use pw_kinds, only: r8
    use pw_text, only: to_text
    implicit none
    private

    public :: regrid

contains

    !> Change the mesh as `mark` requests (mark(leaf), the same on all ranks) and as nesting and the mesh's lowest and
    !> highest level allow, distribute it again and move its zones. Guard cells must be filled before, and are not filled
    !> after. `changed`: whether there are other leaves, or leaves on other ranks; `fresh`: which leaves then are not old
    !> ones. Errors (exit_usage), on all ranks and with the mesh unchanged: a highest level beyond the range of keys, and
    !> more blocks than fit on a rank.
    subroutine regrid(mesh, mark, comm, error, changed, fresh)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: mark(:)
        type(comm_t), intent(inout) :: comm
        type(error_t), intent(inout) :: error
        logical, intent(out) :: changed
        logical, allocatable, intent(out), optional :: fresh(:)
        type(tree_t) :: new
        integer, allocatable :: kind(:), origin(:), owner(:)

        changed = .false.
        call mesh%tree%check_level(mesh%highest_level, error)
        if (error%failed()) return
        call adapt_tree(mesh%tree, mark, mesh%lowest_level, mesh%highest_level, new, kind, origin)
        call new%partition(comm%n_ranks, owner)
        new%owner = owner
        changed = any(kind /= kept)
        if (.not. changed) changed = any(owner /= mesh%tree%owner)
        if (changed) call transfer_zones(mesh, new, kind, origin, comm, error)
        if (error%failed()) changed = .false.
        if (present(fresh)) fresh = kind /= kept
    end subroutine regrid

    !> Make `new`, with its owners, the tree of the mesh, and compute its leaves' zones from those of the old: kind and
    !> origin as tree%adapt gives them.
    subroutine transfer_zones(mesh, new, kind, origin, comm, error)
        type(mesh_t), intent(inout) :: mesh
        type(tree_t), intent(in) :: new
        integer, intent(in) :: kind(:), origin(:)
        type(comm_t), intent(inout) :: comm
        type(error_t), intent(inout) :: error
        type(mesh_t) :: after
        type(parcel_t), allocatable :: parcels(:)
        integer, allocatable :: capacity(:)
        integer :: leaf, rank

        call comm%all_gather([size(mesh%local) + mesh%n_parents() + mesh%n_free], capacity)
        call check_room(slots_needed(new, mesh%parents, comm%n_ranks), capacity, error)
        if (error%failed()) return
        call mesh%release_parents()

        ! Both meshes share the container: what is read is the old one's, what is written the new one's.
        after = mesh
        after%tree = new
        deallocate (after%slot)
        allocate (after%slot(new%n_leaves), source=0)
        do leaf = 1, new%n_leaves
            rank = new%owner(leaf)
            if (rank /= mesh%rank .or. kind(leaf) /= kept .or. rank /= mesh%tree%owner(origin(leaf))) cycle
            after%slot(leaf) = mesh%slot(origin(leaf))
        end do
        call coarsen_here(mesh, after, kind, origin)
        if (comm%n_ranks > 1) then
            call list_parcels(mesh, new, kind, origin, parcels)
            call send_parcels(mesh, after, kind, origin, parcels, capacity, comm)
        end if
        call refine_here(mesh, after, kind, origin)
        call after%note_owners()
        mesh = after
    end subroutine transfer_zones

    !> An error if a rank needs more slots than its `capacity`, both counted from rank 0.
    subroutine check_room(needed, capacity, error)
        integer, intent(in) :: needed(0:), capacity(0:)
        type(error_t), intent(inout) :: error
        integer :: r
        character(:), allocatable :: owner

        do r = 0, size(capacity) - 1
            if (needed(r) <= capacity(r)) cycle
            owner = ''
            if (size(capacity) > 1) owner = ' of rank '//to_text(r)
            call error%raise(exit_usage, 'the mesh needs '//to_text(needed(r))//' blocks, but the memory'//owner//' has '// &
                             'room for '//to_text(capacity(r)), 'regrid', &
                             'use more --memory or --max-blocks, or lower the highest level')
            return
        end do
    end subroutine check_room

    !> Parents on this rank, from their children here: the parent takes the slot of the first of these.
    subroutine coarsen_here(mesh, after, kind, origin)
        type(mesh_t), intent(in) :: mesh
        type(mesh_t), intent(inout) :: after
        integer, intent(in) :: kind(:), origin(:)
        integer, allocatable :: work(:)
        integer :: leaf, old, l, n

        allocate (work(count(kind == parent)))
        n = 0
        do leaf = 1, size(kind)
            if (kind(leaf) /= parent .or. after%tree%owner(leaf) /= mesh%rank) cycle
            do old = origin(leaf), origin(leaf) + 2**mesh%dims - 1
                if (mesh%slot(old) == 0) cycle
                if (after%slot(leaf) == 0) then
                    after%slot(leaf) = mesh%slot(old)
                    n = n + 1
                    work(n) = leaf
                else
                    call after%give_slot(mesh%slot(old))
                end if
            end do
        end do
        !$omp parallel do schedule(dynamic)
        do l = 1, n
            call coarsen_one(mesh, after, work(l), origin(work(l)))
        end do
    end subroutine coarsen_here

    !> The zones of the new leaf `leaf` above those of its children, of which `first` is the first, that are here.
    subroutine coarsen_one(mesh, after, leaf, first)
        type(mesh_t), intent(in) :: mesh
        type(mesh_t), intent(inout) :: after
        integer, intent(in) :: leaf, first
        real(r8), allocatable :: means(:, :)
        integer :: c

        allocate (means(octant_values(mesh), 0:2**mesh%dims - 1))
        do c = 0, ubound(means, 2)
            if (mesh%slot(first + c) == 0) cycle
            call restrict_box(mesh, mesh%slot(first + c), mesh%zone_volumes(first + c), octant_box(mesh, 0), means(:, c))
        end do
        do c = 0, ubound(means, 2)
            if (mesh%slot(first + c) == 0) cycle
            call unpack_box(after, after%slot(leaf), octant_box(mesh, c), means(:, c))
        end do
    end subroutine coarsen_one

    !> Children on this rank of blocks that were also here: the last of them takes its parent's slot.
    subroutine refine_here(mesh, after, kind, origin)
        type(mesh_t), intent(in) :: mesh
        type(mesh_t), intent(inout) :: after
        integer, intent(in) :: kind(:), origin(:)
        integer, allocatable :: first(:), last(:)
        integer :: leaf, parent_leaf, l, n

        allocate (first(count(kind == child)), last(count(kind == child)))
        n = 0
        parent_leaf = 0
        do leaf = 1, size(kind)
            if (kind(leaf) /= child .or. after%tree%owner(leaf) /= mesh%rank) cycle
            if (mesh%slot(origin(leaf)) == 0) cycle
            if (origin(leaf) /= parent_leaf) then
                n = n + 1
                first(n) = leaf
            end if
            parent_leaf = origin(leaf)
            last(n) = leaf
        end do
        do l = 1, n
            do leaf = first(l), last(l) - 1
                after%slot(leaf) = after%take_slot()
            end do
            after%slot(last(l)) = mesh%slot(origin(last(l)))
        end do
        !$omp parallel do schedule(dynamic)
        do l = 1, n
            call refine_one(mesh, after, origin(first(l)), first(l), last(l))
        end do
    end subroutine refine_here

    !> The zones of the new leaves `first` to `last`, children of the old leaf `old`.
    subroutine refine_one(mesh, after, old, first, last)
        type(mesh_t), intent(in) :: mesh
        type(mesh_t), intent(inout) :: after
        integer, intent(in) :: old, first, last
        real(r8), allocatable :: stars(:, :)
        integer :: leaf

        allocate (stars(star_size(mesh, octant_box(mesh, 0)), first:last))
        do leaf = first, last
            call pack_star(mesh, mesh%slot(old), octant_box(mesh, octant_of(after%tree, leaf)), stars(:, leaf))
        end do
        do leaf = first, last
            call prolong_star(after, stars(:, leaf), after%zone_volumes(leaf), after%slot(leaf), interior(after))
        end do
    end subroutine refine_one

end module ember_regrid
