!> The fill of guard cells on faces and edges of blocks (in 2-d: sides and corners), for all variables.
!>
!> Two phases. First copies from leaves of equal level and means from finer ones, then the boundary conditions. Then
!> prolongation from coarser leaves: by the nesting of leaves its stars are in zones filled by the first phase; and
!> the boundaries of those blocks again. A guard cell depends only on the mesh, not on the rank or thread that fills it.
module ember_guards
    use ember_boundaries, only: fill_boundaries, touches_boundary
    use ember_container, only: copy_box, pack_box, unpack_box
    use ember_mesh, only: block_zones, first_guard, guard_zones, last_guard, mesh_t
    use ember_parallel, only: comm_t
    use ember_prolongation, only: pack_star, prolong_star, star_size
    use ember_restriction, only: restrict_box, restrict_to
    use ember_tree, only: coarser, equal, finer, outside
    use pw_kinds, only: i8, r8
    implicit none
    private

    integer, parameter :: half = block_zones/2
    integer, parameter :: n_most = 6*4 + 12*2             !< transfers to a block: of each face four, of each edge two
    integer, parameter :: n_largest = 3*half**2 + 4*half  !< zones of the star of a face, more than its means

    !> A transfer from a leaf to the guard cells of another. Boxes: of zones for a copy; of the means in the finer leaf's
    !> count; of the coarse zones that cover `to_box`.
    type :: transfer_t
        integer :: relation = outside              !< of the source to the destination
        integer :: from = 0, to = 0                !< leaves
        integer :: from_box(2, 3) = 1, to_box(2, 3) = 1
        integer(i8) :: start = 0                   !< in a message buffer, from 0
    end type transfer_t

    type :: transfers_t
        integer :: n = 0
        type(transfer_t), allocatable :: item(:)
    end type transfers_t

    type :: phase_t
        type(transfers_t) :: here                  !< between leaves of this rank, by destination
        integer :: n_destinations = 0
        integer, allocatable :: first(:)           !< (destination) in `here`; one more at the end
        type(transfers_t) :: send, receive
        integer(i8), allocatable :: send_count(:), receive_count(:)   !< (0:n_ranks - 1) values
        integer :: n_bounded = 0
        integer, allocatable :: bounded(:)         !< leaves whose boundaries are filled at the end
    end type phase_t

    type, public :: guards_t
        type(phase_t), private :: phase(2)
        real(r8), allocatable, private :: send(:), receive(:)
    contains
        procedure :: build
        procedure :: fill
    end type guards_t

contains

    !> Set up what this rank copies, sends and receives: after each change of the tree or its owners.
    subroutine build(self, mesh)
        class(guards_t), intent(inout) :: self
        type(mesh_t), intent(in) :: mesh
        type(transfer_t) :: list(n_most)
        logical, allocatable :: beyond(:)
        integer :: p, l, m, n, leaf
        integer(i8) :: n_send, n_receive

        n = size(mesh%local)
        do p = 1, 2
            call start_phase(self%phase(p), n)
        end do
        allocate (beyond(mesh%tree%n_leaves), source=.false.)
        do l = 1, size(mesh%local)
            leaf = mesh%local(l)
            call transfers_to(mesh, leaf, list, n)
            do m = 1, n
                call note(self%phase(phase_of(list(m))), list(m), mesh%tree%owner(list(m)%from) == mesh%rank)
            end do
            if (mesh%n_ranks > 1) call note_others(mesh, leaf, beyond)
            if (.not. touches_boundary(mesh, leaf)) cycle
            call note_bounded(self%phase(1), leaf)
            if (any(list(:n)%relation == coarser)) call note_bounded(self%phase(2), leaf)
        end do
        ! The same walk as their owner's over the leaves of other ranks that touch those of this rank.
        do leaf = 1, mesh%tree%n_leaves
            if (.not. beyond(leaf)) cycle
            call transfers_to(mesh, leaf, list, n)
            do m = 1, n
                if (mesh%tree%owner(list(m)%from) == mesh%rank) call append(self%phase(phase_of(list(m)))%send, list(m))
            end do
        end do

        n_send = 0
        n_receive = 0
        do p = 1, 2
            associate (phase => self%phase(p))
                phase%first(phase%n_destinations + 1) = phase%here%n + 1
                call place_messages(mesh, phase%send, .true., phase%send_count)
                call place_messages(mesh, phase%receive, .false., phase%receive_count)
                n_send = max(n_send, sum(phase%send_count))
                n_receive = max(n_receive, sum(phase%receive_count))
            end associate
        end do
        if (allocated(self%send)) deallocate (self%send, self%receive)
        allocate (self%send(n_send), self%receive(n_receive))
    end subroutine build

    !> A phase of at most `n` destinations, without transfers yet.
    pure subroutine start_phase(phase, n)
        type(phase_t), intent(out) :: phase
        integer, intent(in) :: n

        allocate (phase%first(n + 1), phase%bounded(n))
    end subroutine start_phase

    !> Add the transfer `t` to those within this rank (`here`) or those that it receives.
    pure subroutine note(phase, t, here)
        type(phase_t), intent(inout) :: phase
        type(transfer_t), intent(in) :: t
        logical, intent(in) :: here
        logical :: begins

        if (.not. here) then
            call append(phase%receive, t)
            return
        end if
        begins = phase%here%n == 0
        if (.not. begins) begins = phase%here%item(phase%here%n)%to /= t%to
        call append(phase%here, t)
        if (.not. begins) return
        phase%n_destinations = phase%n_destinations + 1
        phase%first(phase%n_destinations) = phase%here%n
    end subroutine note

    pure subroutine note_bounded(phase, leaf)
        type(phase_t), intent(inout) :: phase
        integer, intent(in) :: leaf

        phase%n_bounded = phase%n_bounded + 1
        phase%bounded(phase%n_bounded) = leaf
    end subroutine note_bounded

    !> Fill the guard cells of all leaves of this rank, together with the other ranks.
    subroutine fill(self, mesh, comm)
        class(guards_t), intent(inout) :: self
        type(mesh_t), intent(inout) :: mesh
        type(comm_t), intent(inout) :: comm
        integer :: p, m

        do p = 1, 2
            associate (phase => self%phase(p))
                !$omp parallel do schedule(dynamic)
                do m = 1, phase%send%n
                    call send_one(mesh, phase%send%item(m), self%send)
                end do
                if (mesh%n_ranks > 1) &
                    call comm%exchange_begin(self%send, phase%send_count, self%receive, phase%receive_count)
                !$omp parallel do schedule(guided)
                do m = 1, phase%n_destinations
                    call fill_one(mesh, phase%here%item(phase%first(m):phase%first(m + 1) - 1))
                end do
                if (mesh%n_ranks > 1) call comm%exchange_finish()
                !$omp parallel do schedule(dynamic)
                do m = 1, phase%receive%n
                    call receive_one(mesh, phase%receive%item(m), self%receive)
                end do
                !$omp parallel do schedule(dynamic)
                do m = 1, phase%n_bounded
                    call fill_boundaries(mesh, phase%bounded(m))
                end do
            end associate
        end do
    end subroutine fill

    !> Do transfers between leaves of this rank.
    subroutine fill_one(mesh, list)
        type(mesh_t), intent(inout) :: mesh
        type(transfer_t), intent(in) :: list(:)
        real(r8) :: buffer(mesh%n_variables*n_largest)
        integer :: m

        do m = 1, size(list)
            associate (t => list(m), from => mesh%slot(list(m)%from), to => mesh%slot(list(m)%to))
                select case (t%relation)
                case (equal)
                    call copy_box(mesh, from, t%from_box, to, t%to_box)
                case (finer)
                    call restrict_to(mesh, from, mesh%zone_volumes(t%from), t%from_box, to, t%to_box)
                case (coarser)
                    call pack_star(mesh, from, t%from_box, buffer)
                    call prolong_star(mesh, buffer, mesh%zone_volumes(t%to), to, t%to_box)
                end select
            end associate
        end do
    end subroutine fill_one

    !> Pack the data that a transfer needs from its source into the messages.
    subroutine send_one(mesh, t, buffer)
        type(mesh_t), intent(in) :: mesh
        type(transfer_t), intent(in) :: t
        real(r8), contiguous, intent(inout) :: buffer(:)
        integer :: from

        from = mesh%slot(t%from)
        select case (t%relation)
        case (equal)
            call pack_box(mesh, from, t%from_box, buffer(t%start + 1:))
        case (finer)
            call restrict_box(mesh, from, mesh%zone_volumes(t%from), t%from_box, buffer(t%start + 1:))
        case (coarser)
            call pack_star(mesh, from, t%from_box, buffer(t%start + 1:))
        end select
    end subroutine send_one

    !> Do a transfer whose source arrived by message.
    subroutine receive_one(mesh, t, buffer)
        type(mesh_t), intent(inout) :: mesh
        type(transfer_t), intent(in) :: t
        real(r8), contiguous, intent(in) :: buffer(:)
        integer :: to

        to = mesh%slot(t%to)
        if (t%relation == coarser) then
            call prolong_star(mesh, buffer(t%start + 1:), mesh%zone_volumes(t%to), to, t%to_box)
        else
            call unpack_box(mesh, to, t%to_box, buffer(t%start + 1:))
        end if
    end subroutine receive_one

    !> All transfers to `leaf`, `n` of them, in an order determined by the tree.
    pure subroutine transfers_to(mesh, leaf, list, n)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: leaf
        type(transfer_t), intent(out) :: list(n_most)
        integer, intent(out) :: n
        integer :: direction(3), relation, leaves(4), n_leaves, i, j, k, m

        n = 0
        do k = merge(-1, 0, mesh%dims == 3), merge(1, 0, mesh%dims == 3)
            do j = -1, 1
                do i = -1, 1
                    direction = [i, j, k]
                    if (.not. has_guards(direction)) cycle
                    call mesh%tree%neighbour(leaf, direction, relation, leaves, n_leaves)
                    do m = 1, n_leaves
                        n = n + 1
                        list(n)%relation = relation
                        list(n)%from = leaves(m)
                        list(n)%to = leaf
                        call set_boxes(mesh, direction, list(n))
                    end do
                end do
            end do
        end do
    end subroutine transfers_to

    !> Whether guard cells in this direction are needed: those across faces and edges.
    pure logical function has_guards(direction)
        integer, intent(in) :: direction(3)

        has_guards = count(direction /= 0) == 1 .or. count(direction /= 0) == 2
    end function has_guards

    !> The boxes of the transfer `t`, whose destination has its guard cells in `direction`.
    pure subroutine set_boxes(mesh, direction, t)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: direction(3)
        type(transfer_t), intent(inout) :: t
        integer :: d, part

        do d = 1, mesh%dims
            select case (direction(d))
            case (-1)
                t%to_box(:, d) = [first_guard, 0]
            case (0)
                t%to_box(:, d) = [1, block_zones]
            case (1)
                t%to_box(:, d) = [block_zones + 1, last_guard]
            end select
            select case (t%relation)
            case (equal)
                t%from_box(:, d) = t%to_box(:, d) - direction(d)*block_zones
            case (finer)
                select case (direction(d))
                case (-1)
                    t%from_box(:, d) = [half - guard_zones + 1, half]
                case (0)
                    t%from_box(:, d) = [1, half]
                    t%to_box(:, d) = t%from_box(:, d) + half*modulo(mesh%tree%place(d, t%from), 2)
                case (1)
                    t%from_box(:, d) = [1, guard_zones]
                end select
            case (coarser)
                ! The destination is the lower (0) or upper (1) half of a block of the coarser level.
                part = modulo(mesh%tree%place(d, t%to), 2)
                select case (direction(d))
                case (-1)
                    t%from_box(:, d) = half*part + [1 - guard_zones/2, 0]
                    if (part == 0) t%from_box(:, d) = t%from_box(:, d) + block_zones
                case (0)
                    t%from_box(:, d) = half*part + [1, half]
                case (1)
                    t%from_box(:, d) = half*(part + 1) + [1, guard_zones/2]
                    if (part == 1) t%from_box(:, d) = t%from_box(:, d) - block_zones
                end select
            end select
        end do
    end subroutine set_boxes

    !> Mark the leaves of other ranks that touch `leaf`.
    pure subroutine note_others(mesh, leaf, beyond)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: leaf
        logical, intent(inout) :: beyond(:)
        integer :: direction(3), relation, leaves(4), n, i, j, k, m

        do k = merge(-1, 0, mesh%dims == 3), merge(1, 0, mesh%dims == 3)
            do j = -1, 1
                do i = -1, 1
                    direction = [i, j, k]
                    if (.not. has_guards(direction)) cycle
                    call mesh%tree%neighbour(leaf, direction, relation, leaves, n)
                    do m = 1, n
                        if (mesh%tree%owner(leaves(m)) /= mesh%rank) beyond(leaves(m)) = .true.
                    end do
                end do
            end do
        end do
    end subroutine note_others

    !> The position of each transfer in the messages, consecutive within the part of its peer; `sent`: the peer
    !> is the destination's owner, otherwise the source's. `n_values` per rank.
    subroutine place_messages(mesh, list, sent, n_values)
        type(mesh_t), intent(in) :: mesh
        type(transfers_t), intent(inout) :: list
        logical, intent(in) :: sent
        integer(i8), allocatable, intent(out) :: n_values(:)
        integer(i8) :: first(0:mesh%n_ranks - 1)
        integer :: m, rank

        allocate (n_values(0:mesh%n_ranks - 1), source=0_i8)
        do m = 1, list%n
            rank = peer(list%item(m))
            list%item(m)%start = n_values(rank)
            n_values(rank) = n_values(rank) + values_of(mesh, list%item(m))
        end do
        first(0) = 0
        do rank = 1, mesh%n_ranks - 1
            first(rank) = first(rank - 1) + n_values(rank - 1)
        end do
        do m = 1, list%n
            list%item(m)%start = first(peer(list%item(m))) + list%item(m)%start
        end do

    contains

        pure integer function peer(t)
            type(transfer_t), intent(in) :: t

            peer = mesh%tree%owner(merge(t%to, t%from, sent))
        end function peer

    end subroutine place_messages

    !> Values of a transfer's message.
    pure integer function values_of(mesh, t)
        type(mesh_t), intent(in) :: mesh
        type(transfer_t), intent(in) :: t

        if (t%relation == coarser) then
            values_of = star_size(mesh, t%from_box)
        else
            values_of = mesh%n_variables*product(t%from_box(2, :) - t%from_box(1, :) + 1)
        end if
    end function values_of

    pure integer function phase_of(t)
        type(transfer_t), intent(in) :: t

        phase_of = merge(2, 1, t%relation == coarser)
    end function phase_of

    pure subroutine append(list, t)
        type(transfers_t), intent(inout) :: list
        type(transfer_t), intent(in) :: t
        type(transfer_t), allocatable :: longer(:)

        if (.not. allocated(list%item)) allocate (list%item(64))
        if (list%n == size(list%item)) then
            allocate (longer(2*list%n))
            longer(:list%n) = list%item
            call move_alloc(longer, list%item)
        end if
        list%n = list%n + 1
        list%item(list%n) = t
    end subroutine append

end module ember_guards
