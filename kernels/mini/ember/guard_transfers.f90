!> The transfers between leaves that fill guard cells: which zones of which leaf go to which guard cells of another.
module ember_guard_transfers
    use ember_mesh, only: mesh_t
    use ember_prolongation, only: star_size
    use ember_tree, only: coarser, equal, finer, outside
    use pw_kinds, only: i8
    implicit none
    private

    integer, parameter, public :: most_transfers = 6*4 + 12*2   !< to a block: of each face four, of each edge two

    !> A transfer from a leaf to the guard cells of another. Boxes: of zones for a copy; of the means in the finer leaf's
    !> count; of the coarse zones that cover `to_box`.
    type, public :: transfer_t
        integer :: relation = outside              !< of the source to the destination
        integer :: from = 0, to = 0                !< leaves
        integer :: parent = 0                      !< the slot of the source's parent, if that is what is copied
        integer :: from_box(2, 3) = 1, to_box(2, 3) = 1
        integer(i8) :: start = 0                   !< in a message buffer, from 0
    end type transfer_t

    type, public :: transfers_t
        integer :: n = 0
        type(transfer_t), allocatable :: item(:)
    end type transfers_t

    public :: append, note_others, place_messages, transfers_to

contains

    !> All transfers to `leaf`, `n` of them, in an order determined by the tree. `slot_above`, by leaf: the slot of its
    !> parent, if that has data: then means come from there.
    pure subroutine transfers_to(mesh, leaf, list, n, slot_above)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: leaf
        type(transfer_t), intent(out) :: list(most_transfers)
        integer, intent(out) :: n
        integer, intent(in), optional :: slot_above(:)
        integer :: direction(3), relation, leaves(4), n_leaves, parent, i, j, k, m

        n = 0
        do k = merge(-1, 0, mesh%dims == 3), merge(1, 0, mesh%dims == 3)
            do j = -1, 1
                do i = -1, 1
                    direction = [i, j, k]
                    if (.not. has_guards(direction)) cycle
                    call mesh%tree%neighbour(leaf, direction, relation, leaves, n_leaves)
                    parent = 0
                    if (present(slot_above) .and. relation == finer) parent = slot_above(leaves(1))
                    if (parent > 0) then
                        relation = equal
                        n_leaves = 1
                    end if
                    do m = 1, n_leaves
                        n = n + 1
                        list(n)%parent = parent
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
        integer :: d, part, half

        half = mesh%block/2
        do d = 1, mesh%dims
            select case (direction(d))
            case (-1)
                t%to_box(:, d) = [mesh%first, 0]
            case (0)
                t%to_box(:, d) = [1, mesh%block]
            case (1)
                t%to_box(:, d) = [mesh%block + 1, mesh%last]
            end select
            select case (t%relation)
            case (equal)
                t%from_box(:, d) = t%to_box(:, d) - direction(d)*mesh%block
            case (finer)
                select case (direction(d))
                case (-1)
                    t%from_box(:, d) = [half - mesh%guards + 1, half]
                case (0)
                    t%from_box(:, d) = [1, half]
                    t%to_box(:, d) = t%from_box(:, d) + half*modulo(mesh%tree%place(d, t%from), 2)
                case (1)
                    t%from_box(:, d) = [1, mesh%guards]
                end select
            case (coarser)
                ! The destination is the lower (0) or upper (1) half of a block of the coarser level.
                part = modulo(mesh%tree%place(d, t%to), 2)
                select case (direction(d))
                case (-1)
                    t%from_box(:, d) = half*part + [1 - mesh%guards/2, 0]
                    if (part == 0) t%from_box(:, d) = t%from_box(:, d) + mesh%block
                case (0)
                    t%from_box(:, d) = half*part + [1, half]
                case (1)
                    t%from_box(:, d) = half*(part + 1) + [1, mesh%guards/2]
                    if (part == 1) t%from_box(:, d) = t%from_box(:, d) - mesh%block
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

end module ember_guard_transfers
