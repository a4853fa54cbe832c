!> The fill of guard cells on faces and edges of blocks (in 2-d: sides and corners), for all variables.
!>
!> Two phases, after the fill of parents that have data. First copies from leaves of equal level, or from the parents of
!> finer ones, and means of finer ones, then the boundary conditions. Then prolongation from coarser leaves: by the nesting
!> of leaves its stars are in zones filled by the first phase; and the boundaries of those blocks again. A guard cell depends
!> only on the mesh, not on the rank or thread that fills it.
module ember_guards
    use ember_boundaries, only: fill_boundaries, touches_boundary
    use ember_container, only: copy_box, pack_box, unpack_box
    use ember_guard_transfers, only: append, most_transfers, note_others, place_messages, transfer_t, transfers_t, transfers_to
    use ember_mesh, only: mesh_t
    use ember_parallel, only: comm_t
    use ember_parents, only: parents_t
    use ember_prolongation, only: pack_star, prolong_star, star_size
    use ember_restriction, only: restrict_box, restrict_to
    use ember_tree, only: coarser, equal, finer
    use pw_kinds, only: i8, r8
    implicit none
    private

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
        type(parents_t) :: parents
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
        type(mesh_t), intent(inout) :: mesh
        type(transfer_t) :: list(most_transfers)
        logical, allocatable :: beyond(:)
        integer :: p, l, m, n, leaf
        integer(i8) :: n_send, n_receive

        call self%parents%build(mesh)
        n = size(mesh%local)
        do p = 1, 2
            call start_phase(self%phase(p), n)
        end do
        allocate (beyond(mesh%tree%n_leaves), source=.false.)
        do l = 1, size(mesh%local)
            leaf = mesh%local(l)
            call transfers_to(mesh, leaf, list, n, self%parents%slot_above)
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

        call self%parents%fill(mesh)
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

    !> Values of the star of a face, which no other transfer exceeds.
    pure integer function largest_star(mesh)
        type(mesh_t), intent(in) :: mesh
        integer :: box(2, 3)

        box(1, :) = 1
        box(2, :) = max(1, mesh%zones()/2)
        box(2, 1) = mesh%guards/2
        largest_star = star_size(mesh, box)
    end function largest_star

    !> Do transfers between leaves of this rank.
    subroutine fill_one(mesh, list)
        type(mesh_t), intent(inout) :: mesh
        type(transfer_t), intent(in) :: list(:)
        real(r8) :: buffer(largest_star(mesh))
        integer :: m

        do m = 1, size(list)
            associate (t => list(m), from => mesh%slot(list(m)%from), to => mesh%slot(list(m)%to))
                select case (t%relation)
                case (equal)
                    call copy_box(mesh, merge(t%parent, from, t%parent > 0), t%from_box, to, t%to_box)
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

    pure integer function phase_of(t)
        type(transfer_t), intent(in) :: t

        phase_of = merge(2, 1, t%relation == coarser)
    end function phase_of

end module ember_guards
