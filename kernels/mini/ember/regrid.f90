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
    use ember_container, only: block_bytes, pack_box, pack_star, prolong_star, restrict_box, star_size, unpack_box
    use ember_mesh, only: block_zones, first_guard, last_guard, mesh_t, v_dens, v_pres
    use ember_parallel, only: comm_t
    use ember_tree, only: child, kept, parent, tree_t
    use pw_error, only: error_t, exit_usage
    use pw_kinds, only: i8, r8
    use pw_text, only: to_text
    implicit none
    private

    !> The criteria of refinement.
    type, public :: regrid_settings_t
        integer, allocatable :: variables(:)        !< that are examined; default: density and pressure
        real(r8) :: refine_above = 0.8_r8           !< the estimate of a block that is to be refined
        real(r8) :: coarsen_below = 0.2_r8          !< that of a block that may be coarsened
        real(r8) :: filter = 0.01_r8                !< the share of a variable's size that counts as a ripple
        integer :: dense_level = 0                  !< the lowest level of blocks with zones as dense as `dense`
        real(r8) :: dense = huge(1.0_r8)
        !> Blocks in which this variable's share of the density is neither 0 nor 1, in zones as dense as `front_dense`, have
        !> the highest level; 0: not used.
        integer :: front = 0
        real(r8) :: front_dense = 0.0_r8
    end type regrid_settings_t

    !> Data that one rank sends to another: zones of an old leaf for a new one.
    type :: parcel_t
        integer :: kind = kept                      !< the relation of the old leaf to the new one
        integer :: old = 0, new = 0                 !< leaves
        integer :: octant = 0                       !< of the coarser one of them, from 0
        integer :: from = 0, to = 0                 !< ranks
        integer(i8) :: values = 0
        logical :: done = .false.
    end type parcel_t

    !> The buffers of a round of exchange are at most this part of the smallest rank's container, each.
    integer, parameter :: buffer_part = 32

    public :: mark_leaves, estimate, regrid

contains

    !> For all leaves, on all ranks: mark(leaf) is 1 if the estimate of a variable in one of its zones is above
    !> settings%refine_above, -1 if all are below settings%coarsen_below, otherwise 0; and if the level is not within the
    !> mesh's lowest and highest, or at one of them, the value that this requires. Guard cells must be filled.
    subroutine mark_leaves(mesh, settings, comm, mark)
        type(mesh_t), intent(in) :: mesh
        type(regrid_settings_t), intent(in) :: settings
        type(comm_t), intent(in) :: comm
        integer, allocatable, intent(out) :: mark(:)
        integer, allocatable :: mine(:), all(:), variables(:)
        integer :: next(0:comm%n_ranks - 1), l, v, leaf, r, level
        real(r8) :: largest

        if (allocated(settings%variables)) then
            allocate (variables, source=settings%variables)
        else
            allocate (variables, source=[v_dens, v_pres])
        end if
        allocate (mine(size(mesh%local)))
        !$omp parallel do schedule(dynamic) private(leaf, largest, v, level)
        do l = 1, size(mesh%local)
            leaf = mesh%local(l)
            largest = 0.0_r8
            do v = 1, size(variables)
                largest = max(largest, estimate(mesh, mesh%slot(leaf), variables(v), settings%filter))
            end do
            mine(l) = 0
            if (largest > settings%refine_above) mine(l) = 1
            if (largest < settings%coarsen_below) mine(l) = -1
            level = least_level(mesh, settings, mesh%slot(leaf))
            if (mesh%tree%level(leaf) < level) mine(l) = 1
            if (mesh%tree%level(leaf) == level) mine(l) = max(mine(l), 0)
        end do
        call comm%all_gather(mine, all)

        ! Those of each rank are in Morton order.
        next(0) = 1
        do r = 1, comm%n_ranks - 1
            next(r) = next(r - 1) + count(mesh%tree%owner == r - 1)
        end do
        allocate (mark(mesh%tree%n_leaves))
        do leaf = 1, mesh%tree%n_leaves
            r = mesh%tree%owner(leaf)
            mark(leaf) = all(next(r))
            next(r) = next(r) + 1
            associate (level => mesh%tree%level(leaf))
                if (level >= mesh%highest_level) mark(leaf) = min(mark(leaf), 0)
                if (level <= mesh%lowest_level) mark(leaf) = max(mark(leaf), 0)
                if (level > mesh%highest_level) mark(leaf) = -1
                if (level < mesh%lowest_level) mark(leaf) = 1
            end associate
        end do
    end subroutine mark_leaves

    !> The lowest level of the block in `slot` required by density and fronts.
    integer function least_level(mesh, settings, slot) result(level)
        type(mesh_t), intent(in) :: mesh
        type(regrid_settings_t), intent(in) :: settings
        integer, intent(in) :: slot
        real(r8), parameter :: little = 0.01_r8
        real(r8), dimension(first_guard:last_guard, first_guard:last_guard, mesh%first_k():mesh%last_k()) :: dens, share

        level = 0
        if (settings%dense_level == 0 .and. settings%front == 0) return
        if (mesh%variable_last) then
            dens = mesh%soa(:, :, :, v_dens, slot)
        else
            dens = mesh%aos(v_dens, :, :, :, slot)
        end if
        if (maxval(dens) >= settings%dense) level = settings%dense_level
        if (settings%front == 0) return
        if (mesh%variable_last) then
            share = mesh%soa(:, :, :, settings%front, slot)/dens
        else
            share = mesh%aos(settings%front, :, :, :, slot)/dens
        end if
        if (any(share > little .and. share < 1.0_r8 - little .and. dens >= settings%front_dense)) level = mesh%highest_level
        if (maxval(share, mask=dens >= settings%front_dense) - minval(share, mask=dens >= settings%front_dense) > 0.5_r8) &
            level = mesh%highest_level
    end function least_level

    !> The largest error estimate of a variable in the zones of the block in `slot`, from 0 to 1: second differences, the mixed
    !> ones too, divided by the bound from first differences and `filter` times the values (R. Loehner, An
    !> adaptive finite element scheme for transient problems in CFD, Comput. Methods Appl. Mech. Eng. 61, 1987, p. 323), between
    !> zones that touch; differences are per zone, whatever their widths. Needs one layer of guard cells on faces and edges.
    real(r8) function estimate(mesh, slot, variable, filter)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: slot, variable
        real(r8), intent(in) :: filter
        real(r8) :: u(first_guard:last_guard, first_guard:last_guard, mesh%first_k():mesh%last_k())
        real(r8) :: above(block_zones), below(block_zones)
        integer :: i, j, k, n(3)

        if (mesh%variable_last) then
            u = mesh%soa(:, :, :, variable, slot)
        else
            u = mesh%aos(variable, :, :, :, slot)
        end if
        estimate = 0.0_r8
        n = mesh%zones()
        do k = 1, n(3)
            do j = 1, n(2)
                above = 0.0_r8
                below = tiny(1.0_r8)
                do i = 1, n(1)
                    call add_second(u(i - 1, j, k), u(i, j, k), u(i + 1, j, k), filter, above(i), below(i))
                    call add_second(u(i, j - 1, k), u(i, j, k), u(i, j + 1, k), filter, above(i), below(i))
                    call add_mixed(u(i - 1, j - 1, k), u(i + 1, j - 1, k), u(i - 1, j + 1, k), u(i + 1, j + 1, k), filter, &
                                   above(i), below(i))
                end do
                if (mesh%dims == 3) then
                    do i = 1, n(1)
                        call add_second(u(i, j, k - 1), u(i, j, k), u(i, j, k + 1), filter, above(i), below(i))
                        call add_mixed(u(i - 1, j, k - 1), u(i + 1, j, k - 1), u(i - 1, j, k + 1), u(i + 1, j, k + 1), filter, &
                                       above(i), below(i))
                        call add_mixed(u(i, j - 1, k - 1), u(i, j + 1, k - 1), u(i, j - 1, k + 1), u(i, j + 1, k + 1), filter, &
                                       above(i), below(i))
                    end do
                end if
                estimate = max(estimate, maxval(above/below))
            end do
        end do
        estimate = sqrt(estimate)
    end function estimate

    !> Add the squares of a second difference and of its bound.
    elemental subroutine add_second(low, middle, high, filter, above, below)
        real(r8), intent(in) :: low, middle, high, filter
        real(r8), intent(inout) :: above, below
        real(r8) :: up, down

        up = high - middle
        down = middle - low
        above = above + (up - down)**2
        below = below + (abs(up) + abs(down) + filter*(abs(high) + abs(low) + 2.0_r8*abs(middle)))**2
    end subroutine add_second

    !> Add the squares of a mixed second difference and of the smaller of its bounds: by first differences in the one direction or
    !> in the other. A plane front, which has them in only one direction, thus has the same estimate as in one dimension.
    !> `lh` is low in the first direction and high in the second; mirrored or turned values give the same to the last bit.
    elemental subroutine add_mixed(ll, hl, lh, hh, filter, above, below)
        real(r8), intent(in) :: ll, hl, lh, hh, filter
        real(r8), intent(inout) :: above, below
        real(r8) :: ripple

        ripple = filter*((abs(ll) + abs(hh)) + (abs(hl) + abs(lh)))
        above = above + 0.125_r8*((ll + hh) - (hl + lh))**2
        below = below + 0.125_r8*(min(abs(hh - lh) + abs(hl - ll), abs(hh - hl) + abs(lh - ll)) + ripple)**2
    end subroutine add_mixed

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
        call mesh%tree%adapt(mark, mesh%lowest_level, mesh%highest_level, new, kind, origin)
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

        call comm%all_gather([size(mesh%local) + mesh%n_free], capacity)
        call check_room(new, capacity, error)
        if (error%failed()) return

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

    !> An error if a rank has more leaves than its `capacity`, counted from rank 0.
    subroutine check_room(tree, capacity, error)
        type(tree_t), intent(in) :: tree
        integer, intent(in) :: capacity(0:)
        type(error_t), intent(inout) :: error
        integer :: needed(0:size(capacity) - 1), r
        character(:), allocatable :: whose

        needed = count_by(tree%owner, size(capacity))
        do r = 0, size(capacity) - 1
            if (needed(r) <= capacity(r)) cycle
            whose = ''
            if (size(capacity) > 1) whose = ' of rank '//to_text(r)
            call error%raise(exit_usage, 'the mesh needs '//to_text(needed(r))//' blocks, but the memory'//whose//' has '// &
                             'room for '//to_text(capacity(r)), 'regrid', 'use more --memory, or lower the highest level')
            return
        end do
    end subroutine check_room

    !> The number of occurrences of each number from 0 to n - 1.
    pure function count_by(numbers, n) result(counts)
        integer, intent(in) :: numbers(:), n
        integer :: counts(0:n - 1), i

        counts = 0
        do i = 1, size(numbers)
            counts(numbers(i)) = counts(numbers(i)) + 1
        end do
    end function count_by

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

    !> All data that one rank has and another needs, the same list on all ranks. Parcels that free more slots than they take
    !> come first.
    subroutine list_parcels(mesh, new, kind, origin, parcels)
        type(mesh_t), intent(in) :: mesh
        type(tree_t), intent(in) :: new
        integer, intent(in) :: kind(:), origin(:)
        type(parcel_t), allocatable, intent(out) :: parcels(:)
        integer(i8) :: values(3)
        integer :: order, leaf, c, n

        values(kept) = int(mesh%n_variables, i8)*product(mesh%zones())
        values(child) = star_size(mesh, octant_box(mesh, 0))
        values(parent) = octant_values(mesh)
        allocate (parcels(size(kind) + (2**mesh%dims - 1)*count(kind == parent)))
        n = 0
        do order = 1, 3
            do leaf = 1, size(kind)
                if (kind(leaf) /= merge(parent, merge(kept, child, order == 2), order == 1)) cycle
                do c = 0, merge(2**mesh%dims - 1, 0, kind(leaf) == parent)
                    associate (old => origin(leaf) + c)
                        if (mesh%tree%owner(old) == new%owner(leaf)) cycle
                        n = n + 1
                        parcels(n) = parcel_t(kind(leaf), old, leaf, c, mesh%tree%owner(old), new%owner(leaf), values(kind(leaf)))
                        if (kind(leaf) == child) parcels(n)%octant = octant_of(new, leaf)
                    end associate
                end do
            end do
        end do
        parcels = parcels(:n)
    end subroutine list_parcels

    !> Pack, exchange and apply all parcels, in as many rounds as small buffers and the slots of all ranks (`capacity`, from
    !> rank 0) demand. All ranks compute with the slots of all, and obtain the same rounds.
    subroutine send_parcels(mesh, after, kind, origin, parcels, capacity, comm)
        type(mesh_t), intent(in) :: mesh
        type(mesh_t), intent(inout) :: after
        integer, intent(in) :: kind(:), origin(:), capacity(0:)
        type(parcel_t), intent(inout) :: parcels(:)
        type(comm_t), intent(inout) :: comm
        integer, allocatable :: chosen(:), pending(:)
        logical, allocatable :: has_slot(:)
        integer :: used(0:comm%n_ranks - 1)
        integer(i8) :: limit

        call count_slots(mesh%tree, after%tree, kind, origin, parcels, used, pending, has_slot)
        limit = minval(capacity)*(block_bytes(mesh)/(storage_size(1.0_r8)/8))/buffer_part
        if (size(parcels) > 0) limit = max(limit, maxval(parcels%values))
        do while (.not. all(parcels%done))
            call choose_parcels(parcels, capacity, limit, used, pending, has_slot, chosen)
            call run_round(mesh, after, parcels, chosen, pending, comm)
        end do
    end subroutine send_parcels

    !> Before the rounds: used(rank) slots, from rank 0; pending(old leaf): what still needs it, parcels and children on
    !> its own rank; has_slot(new leaf).
    subroutine count_slots(old, new, kind, origin, parcels, used, pending, has_slot)
        type(tree_t), intent(in) :: old, new
        integer, intent(in) :: kind(:), origin(:)
        type(parcel_t), intent(in) :: parcels(:)
        integer, intent(out) :: used(0:)
        integer, allocatable, intent(out) :: pending(:)
        logical, allocatable, intent(out) :: has_slot(:)
        integer :: leaf, p, here

        allocate (pending(old%n_leaves), source=0)
        allocate (has_slot(new%n_leaves), source=.false.)
        used = count_by(old%owner, size(used))
        do leaf = 1, new%n_leaves
            associate (rank => new%owner(leaf), first => origin(leaf))
                select case (kind(leaf))
                case (kept)
                    has_slot(leaf) = rank == old%owner(first)
                case (parent)
                    here = count(old%owner(first:first + 2**old%dims - 1) == rank)
                    has_slot(leaf) = here > 0
                    used(rank) = used(rank) - max(0, here - 1)
                case (child)
                    if (rank == old%owner(first)) pending(first) = 1
                end select
            end associate
        end do
        do p = 1, size(parcels)
            pending(parcels(p)%old) = pending(parcels(p)%old) + 1
        end do
    end subroutine count_slots

    !> The parcels of the next round: as many as possible without a rank that sends or receives more than `limit` values or
    !> overflows. If slots are so scarce that this order is impossible, `limit` grows until they fit together: their final
    !> state fits. `used`, `pending` and `has_slot` (count_slots) are updated to the state after the round.
    subroutine choose_parcels(parcels, capacity, limit, used, pending, has_slot, chosen)
        type(parcel_t), intent(inout) :: parcels(:)
        integer, intent(in) :: capacity(0:)
        integer(i8), intent(inout) :: limit
        integer, intent(inout) :: used(0:), pending(:)
        logical, intent(inout) :: has_slot(:)
        integer, allocatable, intent(out) :: chosen(:)
        integer(i8) :: sent(0:size(used) - 1), received(0:size(used) - 1)
        integer, allocatable :: pending_then(:)
        logical, allocatable :: has_slot_then(:)
        integer :: used_then(0:size(used) - 1), p, n
        logical :: whole

        allocate (chosen(size(parcels)))
        do
            sent = 0
            received = 0
            used_then = used
            pending_then = pending
            has_slot_then = has_slot
            whole = .true.
            n = 0
            do p = 1, size(parcels)
                associate (it => parcels(p))
                    if (it%done) cycle
                    if (max(sent(it%from), received(it%to)) + it%values > limit) then
                        whole = .false.
                        cycle
                    end if
                    sent(it%from) = sent(it%from) + it%values
                    received(it%to) = received(it%to) + it%values
                    n = n + 1
                    chosen(n) = p
                    pending_then(it%old) = pending_then(it%old) - 1
                    if (pending_then(it%old) == 0) used_then(it%from) = used_then(it%from) - 1
                    if (.not. has_slot_then(it%new)) used_then(it%to) = used_then(it%to) + 1
                    has_slot_then(it%new) = .true.
                end associate
            end do
            if (whole .or. all(used_then <= capacity)) exit
            limit = 2*limit
        end do
        chosen = chosen(:n)
        parcels(chosen)%done = .true.
        used = used_then
        pending = pending_then
        has_slot = has_slot_then
    end subroutine choose_parcels

    !> One round: pack outgoing data, free their slots, exchange, take slots for incoming data and apply them.
    subroutine run_round(mesh, after, parcels, chosen, pending, comm)
        type(mesh_t), intent(in) :: mesh
        type(mesh_t), intent(inout) :: after
        type(parcel_t), intent(in) :: parcels(:)
        integer, intent(in) :: chosen(:), pending(:)
        type(comm_t), intent(inout) :: comm
        real(r8), allocatable, target :: send(:), receive(:)
        integer, allocatable :: leaving(:), arriving(:)
        integer(i8), allocatable :: leaving_at(:), arriving_at(:)
        integer(i8) :: send_count(0:comm%n_ranks - 1), receive_count(0:comm%n_ranks - 1)
        integer :: l

        leaving = pack(chosen, parcels(chosen)%from == mesh%rank)
        arriving = pack(chosen, parcels(chosen)%to == mesh%rank)
        call lay_out(parcels(leaving)%to, parcels(leaving)%values, send_count, leaving_at)
        call lay_out(parcels(arriving)%from, parcels(arriving)%values, receive_count, arriving_at)
        allocate (send(sum(send_count)), receive(sum(receive_count)))

        !$omp parallel do schedule(dynamic)
        do l = 1, size(leaving)
            call pack_parcel(mesh, parcels(leaving(l)), send(leaving_at(l):leaving_at(l) + parcels(leaving(l))%values - 1))
        end do
        call free_slots()
        call comm%exchange_begin(send, send_count, receive, receive_count)
        call comm%exchange_finish()
        do l = 1, size(arriving)
            associate (leaf => parcels(arriving(l))%new)
                if (after%slot(leaf) == 0) after%slot(leaf) = after%take_slot()
            end associate
        end do
        !$omp parallel do schedule(dynamic)
        do l = 1, size(arriving)
            call apply_parcel(after, parcels(arriving(l)), receive(arriving_at(l):arriving_at(l) + parcels(arriving(l))%values - 1))
        end do

    contains

        !> Release the slots of old leaves that are no longer needed: each once, even if it sent several parcels.
        subroutine free_slots()
            logical, allocatable :: given(:)

            allocate (given(size(pending)), source=.false.)
            do l = 1, size(leaving)
                associate (old => parcels(leaving(l))%old)
                    if (pending(old) > 0 .or. given(old)) cycle
                    call after%give_slot(mesh%slot(old))
                    given(old) = .true.
                end associate
            end do
        end subroutine free_slots

    end subroutine run_round

    !> The positions of parts of `values` numbers for the ranks `other` in a buffer ordered by rank, and the counts of each
    !> rank.
    pure subroutine lay_out(other, values, counts, at)
        integer, intent(in) :: other(:)
        integer(i8), intent(in) :: values(:)
        integer(i8), intent(out) :: counts(0:)
        integer(i8), allocatable, intent(out) :: at(:)
        integer(i8) :: next(0:size(counts) - 1)
        integer :: l, r

        counts = 0
        do l = 1, size(other)
            counts(other(l)) = counts(other(l)) + values(l)
        end do
        next(0) = 1
        do r = 1, size(counts) - 1
            next(r) = next(r - 1) + counts(r - 1)
        end do
        allocate (at(size(other)))
        do l = 1, size(other)
            at(l) = next(other(l))
            next(other(l)) = next(other(l)) + values(l)
        end do
    end subroutine lay_out

    !> Write the data of a parcel to `buffer`.
    subroutine pack_parcel(mesh, parcel, buffer)
        type(mesh_t), intent(in) :: mesh
        type(parcel_t), intent(in) :: parcel
        real(r8), contiguous, intent(inout) :: buffer(:)

        select case (parcel%kind)
        case (kept)
            call pack_box(mesh, mesh%slot(parcel%old), interior(mesh), buffer)
        case (child)
            call pack_star(mesh, mesh%slot(parcel%old), octant_box(mesh, parcel%octant), buffer)
        case (parent)
            call restrict_box(mesh, mesh%slot(parcel%old), mesh%zone_volumes(parcel%old), octant_box(mesh, 0), buffer)
        end select
    end subroutine pack_parcel

    !> Compute the zones of a new leaf, or of an octant of it, from the data of a parcel.
    subroutine apply_parcel(after, parcel, buffer)
        type(mesh_t), intent(inout) :: after
        type(parcel_t), intent(in) :: parcel
        real(r8), contiguous, intent(in) :: buffer(:)

        select case (parcel%kind)
        case (kept)
            call unpack_box(after, after%slot(parcel%new), interior(after), buffer)
        case (child)
            call prolong_star(after, buffer, after%zone_volumes(parcel%new), after%slot(parcel%new), interior(after))
        case (parent)
            call unpack_box(after, after%slot(parcel%new), octant_box(after, parcel%octant), buffer)
        end select
    end subroutine apply_parcel

    !> All zones of a block except guard cells.
    pure function interior(mesh) result(box)
        type(mesh_t), intent(in) :: mesh
        integer :: box(2, 3)

        box(1, :) = 1
        box(2, :) = mesh%zones()
    end function interior

    !> The zones of the octant (quadrant) `c` of a block, from 0 in Morton order.
    pure function octant_box(mesh, c) result(box)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: c
        integer :: box(2, 3), half(3)

        half = max(1, mesh%zones()/2)
        box(1, :) = 1 + half*[ibits(c, 0, 1), ibits(c, 1, 1), ibits(c, 2, 1)]
        box(2, :) = box(1, :) + half - 1
    end function octant_box

    !> Values in an octant.
    pure integer function octant_values(mesh)
        type(mesh_t), intent(in) :: mesh

        octant_values = mesh%n_variables*product(max(1, mesh%zones()/2))
    end function octant_values

    !> The octant of its parent that a leaf is.
    pure integer function octant_of(tree, leaf) result(c)
        type(tree_t), intent(in) :: tree
        integer, intent(in) :: leaf

        c = iand(tree%place(1, leaf), 1) + 2*iand(tree%place(2, leaf), 1)
        if (tree%dims == 3) c = c + 4*iand(tree%place(3, leaf), 1)
    end function octant_of

end module ember_regrid
