!> Registers of the fluxes through faces between levels, and the correction of the coarser side by them.
!>
!> A register holds amounts: flux times face area times time step, of the conserved variables, positive in the positive
!> direction (in cylindrical geometry per radian, like volumes). Where levels meet, the zones of the coarser block have been
!> changed by its own amounts; `correct` replaces these by the sum of the finer ones, so that nothing is lost or created
!> (M. J. Berger, P. Colella, J. Comput. Phys. 82 (1989) 64).
module ember_fluxes
    use ember_container, only: make_view, view_t
    use ember_mesh, only: first_species, mesh_t, n_conserved
    use ember_parallel, only: comm_t
    use ember_tree, only: coarser, finer
    use pw_kinds, only: i8, r8
    implicit none
    private

    !> A face of a coarser leaf of this rank, beyond which are finer leaves: the register and, by finer leaf, its rank and
    !> either its register or where its sums start in the messages, from 0.
    type :: meeting_t
        integer :: leaf = 0, direction = 0, side = 0
        integer :: coarse = 0, n = 0, rank(4) = 0, fine(4) = 0
        integer(i8) :: start(4) = -1
    end type meeting_t

    !> Sums of a register for the rank that has the coarser leaf.
    type :: message_t
        integer :: register = 0, rank = 0
        integer(i8) :: start = 0
    end type message_t

    type, public :: registers_t
        integer, private :: n = 0                       !< amounts per zone
        integer, private :: n_together = 1              !< zones of a register in its second direction along one coarser zone
        integer, allocatable, private :: at(:, :, :)    !< (side, direction, leaf): register, 0 for none
        real(r8), pointer, contiguous, private :: amount(:, :, :, :) => null()   !< (variable, a, b, register)
        integer, allocatable, private :: first(:)       !< (coarser leaf here) in `meeting`; one more at the end
        type(meeting_t), allocatable, private :: meeting(:)
        type(message_t), allocatable, private :: message(:)
        integer(i8), allocatable, private :: send_count(:), receive_count(:)
        real(r8), allocatable, private :: send(:), receive(:)
    contains
        procedure :: build
        procedure :: face
        procedure :: clear
        procedure :: correct
    end type registers_t

    !> A leaf's face in the flux registers; not associated if the neighbour has the same level.
    type, public :: face_registers_t
        real(r8), pointer, contiguous :: at(:, :, :) => null()
        logical :: open = .false.   ! an outflow boundary
    end type face_registers_t

contains

    !> Set up cleared registers for the faces of this rank's leaves at which levels meet: after each change of the tree or
    !> its owners.
    subroutine build(self, mesh)
        class(registers_t), intent(inout) :: self
        type(mesh_t), intent(in) :: mesh
        logical, allocatable :: beyond(:)
        integer(i8) :: n_values

        if (allocated(self%at)) deallocate (self%at, self%first, self%meeting, self%message, self%send_count, &
                                            self%receive_count, self%send, self%receive)
        if (associated(self%amount)) deallocate (self%amount)
        allocate (self%at(2, 3, mesh%tree%n_leaves), source=0)
        allocate (self%send_count(0:mesh%n_ranks - 1), self%receive_count(0:mesh%n_ranks - 1), source=0_i8)
        self%n = n_conserved + mesh%n_species
        self%n_together = merge(2, 1, mesh%dims == 3)
        n_values = int(self%n, i8)*(mesh%block/2)*merge(mesh%block/2, 1, mesh%dims == 3)
        call number_registers(self, mesh, beyond)
        call self%clear()
        call list_meetings(self, mesh, n_values)
        call list_messages(self, mesh, beyond, n_values)
        allocate (self%send(sum(self%send_count)), self%receive(sum(self%receive_count)))
    end subroutine build

    !> Number the registers, and allocate them and the lists. `beyond` marks the coarser neighbours on other ranks.
    subroutine number_registers(self, mesh, beyond)
        class(registers_t), intent(inout) :: self
        type(mesh_t), intent(in) :: mesh
        logical, allocatable, intent(out) :: beyond(:)
        integer :: l, leaf, direction, side, relation, leaves(4), n, n_registers, n_meetings, n_messages, n_first
        logical :: meets

        allocate (beyond(mesh%tree%n_leaves), source=.false.)
        n_registers = 0
        n_meetings = 0
        n_messages = 0
        n_first = 0
        do l = 1, size(mesh%local)
            leaf = mesh%local(l)
            meets = .false.
            do direction = 1, mesh%dims
                do side = 1, 2
                    call across(mesh, leaf, direction, side, relation, leaves, n)
                    if (relation /= finer .and. relation /= coarser) cycle
                    n_registers = n_registers + 1
                    self%at(side, direction, leaf) = n_registers
                    if (relation == finer) then
                        meets = .true.
                        n_meetings = n_meetings + 1
                    else if (mesh%tree%owner(leaves(1)) /= mesh%rank) then
                        beyond(leaves(1)) = .true.
                        n_messages = n_messages + 1
                    end if
                end do
            end do
            if (meets) n_first = n_first + 1
        end do
        allocate (self%amount(self%n, mesh%block, merge(mesh%block, 1, mesh%dims == 3), n_registers))
        allocate (self%meeting(n_meetings), self%message(n_messages), self%first(n_first + 1))
    end subroutine number_registers

    !> The faces of this rank's coarser leaves, and what their finer leaves on other ranks send: `n_values` each.
    subroutine list_meetings(self, mesh, n_values)
        class(registers_t), intent(inout) :: self
        type(mesh_t), intent(in) :: mesh
        integer(i8), intent(in) :: n_values
        type(meeting_t) :: meeting
        integer :: l, leaf, direction, side, relation, leaves(4), n, c, m, rank, n_first

        m = 0
        n_first = 0
        do l = 1, size(mesh%local)
            leaf = mesh%local(l)
            do direction = 1, mesh%dims
                do side = 1, 2
                    if (self%at(side, direction, leaf) == 0) cycle
                    call across(mesh, leaf, direction, side, relation, leaves, n)
                    if (relation /= finer) cycle
                    meeting = meeting_t(leaf, direction, side, self%at(side, direction, leaf), n)
                    do c = 1, n
                        rank = mesh%tree%owner(leaves(c))
                        meeting%rank(c) = rank
                        if (rank == mesh%rank) then
                            meeting%fine(c) = self%at(3 - side, direction, leaves(c))
                        else
                            meeting%start(c) = self%receive_count(rank)
                            self%receive_count(rank) = self%receive_count(rank) + n_values
                        end if
                    end do
                    m = m + 1
                    self%meeting(m) = meeting
                    if (m > 1) then
                        if (self%meeting(m - 1)%leaf == leaf) cycle
                    end if
                    n_first = n_first + 1
                    self%first(n_first) = m
                end do
            end do
        end do
        self%first(n_first + 1) = m + 1
        ! Until here they start relative to the part of their rank.
        do m = 1, size(self%meeting)
            do c = 1, self%meeting(m)%n
                rank = self%meeting(m)%rank(c)
                if (rank /= mesh%rank) self%meeting(m)%start(c) = self%meeting(m)%start(c) + sum(self%receive_count(:rank - 1))
            end do
        end do
    end subroutine list_meetings

    !> What this rank's finer leaves send, in the order in which the receiver lists its faces: `n_values` each.
    subroutine list_messages(self, mesh, beyond, n_values)
        class(registers_t), intent(inout) :: self
        type(mesh_t), intent(in) :: mesh
        logical, intent(in) :: beyond(:)
        integer(i8), intent(in) :: n_values
        integer :: leaf, direction, side, relation, leaves(4), n, c, m, rank

        m = 0
        do leaf = 1, mesh%tree%n_leaves
            if (.not. beyond(leaf)) cycle
            rank = mesh%tree%owner(leaf)
            do direction = 1, mesh%dims
                do side = 1, 2
                    call across(mesh, leaf, direction, side, relation, leaves, n)
                    if (relation /= finer) cycle
                    do c = 1, n
                        if (mesh%tree%owner(leaves(c)) /= mesh%rank) cycle
                        m = m + 1
                        self%message(m) = message_t(self%at(3 - side, direction, leaves(c)), rank, self%send_count(rank))
                        self%send_count(rank) = self%send_count(rank) + n_values
                    end do
                end do
            end do
        end do
        ! Until here they start relative to the part of their rank.
        do m = 1, size(self%message)
            self%message(m)%start = self%message(m)%start + sum(self%send_count(:self%message(m)%rank - 1))
        end do
    end subroutine list_messages

    !> The register of a face of `leaf`, at the lower (1) or upper (2) end of `direction`: amounts (variable, a, b), a and b
    !> the other two directions in order; null if no levels meet or another rank has the leaf.
    function face(self, leaf, direction, side) result(p)
        class(registers_t), intent(in) :: self
        integer, intent(in) :: leaf, direction, side
        real(r8), pointer, contiguous :: p(:, :, :)

        nullify (p)
        if (self%at(side, direction, leaf) > 0) p => self%amount(:, :, :, self%at(side, direction, leaf))
    end function face

    !> Zero all registers.
    subroutine clear(self)
        class(registers_t), intent(inout) :: self
        integer :: r

        !$omp parallel do schedule(static)
        do r = 1, size(self%amount, 4)
            self%amount(:, :, :, r) = 0.0_r8
        end do
    end subroutine clear

    !> Correct the conserved variables of coarser leaves along faces to finer ones (those normal to `direction` if it is
    !> present), together with the other ranks: `touched(leaf)` marks the leaves of this rank that have changed.
    subroutine correct(self, mesh, comm, touched, direction)
        class(registers_t), intent(inout) :: self
        type(mesh_t), intent(inout) :: mesh
        type(comm_t), intent(inout) :: comm
        logical, intent(out) :: touched(:)
        integer, intent(in), optional :: direction
        integer :: c, m, only

        only = 0
        if (present(direction)) only = direction
        touched = .false.
        !$omp parallel do schedule(static)
        do m = 1, size(self%message)
            call sum_fine(self%n_together, self%amount(:, :, :, self%message(m)%register), &
                          self%send(self%message(m)%start + 1:))
        end do
        if (mesh%n_ranks > 1) then
            call comm%exchange_begin(self%send, self%send_count, self%receive, self%receive_count)
            call comm%exchange_finish()
        end if
        !$omp parallel do schedule(dynamic)
        do c = 1, size(self%first) - 1
            do m = self%first(c), self%first(c + 1) - 1
                if (only > 0 .and. self%meeting(m)%direction /= only) cycle
                call correct_face(self, mesh, self%meeting(m))
                touched(self%meeting(m)%leaf) = .true.
            end do
        end do
    end subroutine correct

    !> Correct the zones along one face.
    subroutine correct_face(self, mesh, meeting)
        type(registers_t), intent(in) :: self
        type(mesh_t), intent(inout) :: mesh
        type(meeting_t), intent(in) :: meeting
        real(r8) :: volume(mesh%first:mesh%last), part(self%n, mesh%block/2, size(self%amount, 3)/self%n_together)
        real(r8) :: change(self%n)
        integer :: variable(self%n), c, a, b, a0, b0, zone(3), along(2), half, at, v
        type(view_t) :: view

        half = mesh%block/2
        volume = mesh%zone_volumes(meeting%leaf)
        call make_view(mesh, mesh%slot(meeting%leaf), view)
        variable = [(v, v=1, n_conserved), (first_species + v, v=0, mesh%n_species - 1)]
        along = pack([1, 2, 3], [1, 2, 3] /= meeting%direction)
        zone(meeting%direction) = merge(1, mesh%block, meeting%side == 1)
        do c = 1, meeting%n
            a0 = half*modulo(c - 1, 2)
            b0 = half*((c - 1)/2)
            if (meeting%fine(c) > 0) then
                call sum_fine(self%n_together, self%amount(:, :, :, meeting%fine(c)), part)
            else
                part = reshape(self%receive(meeting%start(c) + 1:meeting%start(c) + size(part)), shape(part))
            end if
            do b = 1, size(part, 3)
                do a = 1, half
                    zone(along) = [a0 + a, b0 + b]
                    change = (self%amount(:, a0 + a, b0 + b, meeting%coarse) - part(:, a, b))/volume(zone(1))
                    ! The flux through the lower face enters the block.
                    if (meeting%side == 1) change = -change
                    at = view%origin + sum(view%zone*zone)
                    do v = 1, self%n
                        view%values(at + variable(v)*view%variable) = view%values(at + variable(v)*view%variable) + change(v)
                    end do
                end do
            end do
        end do
    end subroutine correct_face

    !> Sums of a finer leaf's amounts over one zone of the coarser leaf, by pairs: in its second direction `n_together`
    !> zones of the register are one.
    pure subroutine sum_fine(n_together, amount, total)
        integer, intent(in) :: n_together
        real(r8), contiguous, intent(in) :: amount(:, :, :)
        real(r8), intent(inout) :: total(size(amount, 1), size(amount, 2)/2, size(amount, 3)/n_together)
        integer :: a, b

        do b = 1, size(total, 3)
            do a = 1, size(total, 2)
                if (n_together == 2) then
                    total(:, a, b) = (amount(:, 2*a - 1, 2*b - 1) + amount(:, 2*a, 2*b - 1)) &
                                     + (amount(:, 2*a - 1, 2*b) + amount(:, 2*a, 2*b))
                else
                    total(:, a, b) = amount(:, 2*a - 1, b) + amount(:, 2*a, b)
                end if
            end do
        end do
    end subroutine sum_fine

    !> The neighbours across a face of `leaf`.
    pure subroutine across(mesh, leaf, direction, side, relation, leaves, n)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: leaf, direction, side
        integer, intent(out) :: relation, leaves(4), n
        integer :: step(3)

        step = 0
        step(direction) = 2*side - 3
        call mesh%tree%neighbour(leaf, step, relation, leaves, n)
    end subroutine across

end module ember_fluxes
