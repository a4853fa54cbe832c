!> Zones of old leaves that go to the ranks of the new ones, in rounds of limited size.
module ember_parcels
    use ember_container, only: block_bytes, pack_box, unpack_box
    use ember_mesh, only: mesh_t
    use ember_octants, only: interior, octant_box, octant_of, octant_values
    use ember_parallel, only: comm_t
    use ember_prolongation, only: pack_star, prolong_star, star_size
    use ember_restriction, only: restrict_box
    use ember_tree, only: child, kept, parent, tree_t
    use pw_kinds, only: i8, r8
    implicit none
    private

    !> Data that one rank sends to another: zones of an old leaf for a new one.
    type :: parcel_t
        integer :: kind = kept                      !< the relation of the old leaf to the new one
        integer :: old = 0, new = 0                 !< leaves
        integer :: octant = 0                       !< of the coarser one of them, from 0
        integer :: from = 0, to = 0                 !< ranks
        integer(i8) :: values = 0
        logical :: done = .false.
    end type parcel_t

    !> Slots of all ranks' containers during the rounds.
    type :: slots_t
        integer, allocatable :: used(:)             ! (rank, from 0)
        integer, allocatable :: pending(:)          ! (old leaf): parcels and children on the same rank that need it
        logical, allocatable :: has_slot(:)         ! (new leaf)
    end type slots_t

    !> The buffers of a round of exchange are at most this part of the smallest rank's container, each.
    integer, parameter :: buffer_part = 32

    public :: list_parcels, send_parcels, parcel_t

contains

    !> The number of occurrences of each number from 0 to n - 1.
    pure function count_by(numbers, n) result(counts)
        integer, intent(in) :: numbers(:), n
        integer :: counts(0:n - 1), i

        counts = 0
        do i = 1, size(numbers)
            counts(numbers(i)) = counts(numbers(i)) + 1
        end do
    end function count_by

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
        type(slots_t) :: slots
        integer, allocatable :: selected(:)
        integer(i8) :: limit

        call count_slots(mesh%tree, after%tree, kind, origin, parcels, comm%n_ranks, slots)
        limit = minval(capacity)*(block_bytes(mesh)/(storage_size(1.0_r8)/8))/buffer_part
        if (size(parcels) > 0) limit = max(limit, maxval(parcels%values))
        do while (.not. all(parcels%done))
            call choose_parcels(parcels, capacity, limit, slots, selected)
            call run_round(mesh, after, parcels, selected, slots%pending, comm)
        end do
    end subroutine send_parcels

    !> The slots before the rounds.
    subroutine count_slots(old, new, kind, origin, parcels, n_ranks, slots)
        type(tree_t), intent(in) :: old, new
        integer, intent(in) :: kind(:), origin(:), n_ranks
        type(parcel_t), intent(in) :: parcels(:)
        type(slots_t), intent(out) :: slots
        integer :: leaf, p, here

        allocate (slots%pending(old%n_leaves), source=0)
        allocate (slots%has_slot(new%n_leaves), source=.false.)
        allocate (slots%used(0:n_ranks - 1))
        slots%used(:) = count_by(old%owner, n_ranks)
        do leaf = 1, new%n_leaves
            associate (rank => new%owner(leaf), first => origin(leaf))
                select case (kind(leaf))
                case (kept)
                    slots%has_slot(leaf) = rank == old%owner(first)
                case (parent)
                    here = count(old%owner(first:first + 2**old%dims - 1) == rank)
                    slots%has_slot(leaf) = here > 0
                    slots%used(rank) = slots%used(rank) - max(0, here - 1)
                case (child)
                    if (rank == old%owner(first)) slots%pending(first) = 1
                end select
            end associate
        end do
        do p = 1, size(parcels)
            slots%pending(parcels(p)%old) = slots%pending(parcels(p)%old) + 1
        end do
    end subroutine count_slots

    !> The parcels of the next round: as many as possible without a rank that sends or receives more than `limit` values or
    !> overflows. If slots are so scarce that this order is impossible, `limit` grows until they fit together: their final
    !> state fits. `slots` are updated to the state after the round.
    subroutine choose_parcels(parcels, capacity, limit, slots, selected)
        type(parcel_t), intent(inout) :: parcels(:)
        integer, intent(in) :: capacity(0:)
        integer(i8), intent(inout) :: limit
        type(slots_t), intent(inout) :: slots
        integer, allocatable, intent(out) :: selected(:)
        integer(i8) :: sent(0:size(capacity) - 1), received(0:size(capacity) - 1)
        type(slots_t) :: later
        integer :: p, n
        logical :: whole

        allocate (selected(size(parcels)))
        do
            sent = 0
            received = 0
            later = slots
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
                    selected(n) = p
                    later%pending(it%old) = later%pending(it%old) - 1
                    if (later%pending(it%old) == 0) later%used(it%from) = later%used(it%from) - 1
                    if (.not. later%has_slot(it%new)) later%used(it%to) = later%used(it%to) + 1
                    later%has_slot(it%new) = .true.
                end associate
            end do
            if (whole .or. all(later%used <= capacity)) exit
            limit = 2*limit
        end do
        selected = selected(:n)
        parcels(selected)%done = .true.
        slots = later
    end subroutine choose_parcels

    !> One round: pack outgoing data, free their slots, exchange, take slots for incoming data and apply them.
    subroutine run_round(mesh, after, parcels, selected, pending, comm)
        type(mesh_t), intent(in) :: mesh
        type(mesh_t), intent(inout) :: after
        type(parcel_t), intent(in) :: parcels(:)
        integer, intent(in) :: selected(:), pending(:)
        type(comm_t), intent(inout) :: comm
        real(r8), allocatable, target :: send(:), receive(:)
        integer, allocatable :: leaving(:), arriving(:)
        integer(i8), allocatable :: leaving_at(:), arriving_at(:)
        integer(i8) :: send_count(0:comm%n_ranks - 1), receive_count(0:comm%n_ranks - 1)
        integer :: l

        leaving = pack(selected, parcels(selected)%from == mesh%rank)
        arriving = pack(selected, parcels(selected)%to == mesh%rank)
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

end module ember_parcels
