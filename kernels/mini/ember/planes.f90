!> The unsplit scheme of all blocks of a rank: the threads' work on them, which streams the planes of each block once per step
!> (ember_hydro).
module ember_planes
    use ember_eos, only: eos_t
    use ember_hydro, only: advance_block
    use ember_hydro_block, only: step_t
    use ember_hydro_state, only: finish_block, rate_of_block
    use ember_hydro_work, only: ledger_t, scratch_t
    use ember_mesh, only: mesh_t
    use pw_error, only: error_t
    use pw_kinds, only: r8
    use pw_threads, only: thread_number
    implicit none
    private

    type, public :: planes_t
        type(scratch_t), allocatable, private :: scratch(:)   ! one per thread
        real(r8), allocatable, private :: rate(:)             ! (leaf) largest sum of (|v| + c)/width
    contains
        procedure :: start
        procedure :: advance_all
        procedure :: derive_all
        procedure :: largest_rate
        procedure :: eos_seconds
    end type planes_t

contains

    !> Work space of `threads` threads, for a mesh with `n_species` and with gravity or without.
    subroutine start(self, threads, n_species, gravity)
        class(planes_t), intent(inout) :: self
        integer, intent(in) :: threads, n_species
        logical, intent(in) :: gravity
        integer :: i

        allocate (self%scratch(threads))
        !$omp parallel private(i)
        i = thread_number() + 1
        call self%scratch(i)%start(n_species, gravity)
        !$omp end parallel
    end subroutine start

    !> Advance all leaves of this rank by a step; `lost` and `ledger` grow. Errors: those of advance_block.
    subroutine advance_all(self, mesh, step, lost, ledger, error)
        class(planes_t), intent(inout) :: self
        type(mesh_t), intent(inout) :: mesh
        type(step_t), intent(in) :: step
        real(r8), intent(inout) :: lost(:)
        type(ledger_t), intent(inout) :: ledger
        type(error_t), intent(inout) :: error
        real(r8), allocatable :: of_leaf(:, :)
        type(ledger_t), allocatable :: ledgers(:)
        integer :: i, leaf, thread

        allocate (of_leaf(size(lost), size(mesh%local)), source=0.0_r8)
        allocate (ledgers(size(mesh%local)))
        !$omp parallel private(thread, leaf)
        thread = thread_number() + 1
        !$omp do schedule(static)
        do i = 1, size(mesh%local)
            leaf = mesh%local(i)
            if (self%scratch(thread)%error%failed()) cycle
            call advance_block(mesh, leaf, step, self%scratch(thread), self%rate(leaf), of_leaf(:, i), ledgers(i))
        end do
        !$omp end parallel
        lost = lost + sum(of_leaf, dim=2)
        call add_up(ledgers, ledger)
        call first_failure(self%scratch, error)
    end subroutine advance_all

    !> Derived variables and rates of all leaves, or of those that are marked in `only`, from their conserved variables; after the
    !> tree has changed, of those that are marked in `fresh`, and the rates of the others. `ledger` grows.
    subroutine derive_all(self, mesh, eos, ledger, error, only, fresh)
        class(planes_t), intent(inout) :: self
        type(mesh_t), intent(inout) :: mesh
        class(eos_t), intent(in) :: eos
        type(ledger_t), intent(inout) :: ledger
        type(error_t), intent(inout) :: error
        logical, intent(in), optional :: only(:), fresh(:)
        type(ledger_t), allocatable :: ledgers(:)
        integer :: i, leaf, thread

        if (.not. present(only)) then
            if (allocated(self%rate)) deallocate (self%rate)
            allocate (self%rate(mesh%tree%n_leaves), source=0.0_r8)
        end if
        allocate (ledgers(size(mesh%local)))
        !$omp parallel private(thread, leaf)
        thread = thread_number() + 1
        !$omp do schedule(static)
        do i = 1, size(mesh%local)
            leaf = mesh%local(i)
            if (self%scratch(thread)%error%failed()) cycle
            if (present(only)) then
                if (.not. only(leaf)) cycle
            end if
            if (present(fresh)) then
                if (.not. fresh(leaf)) then
                    call rate_of_block(mesh, leaf, self%scratch(thread), self%rate(leaf))
                    cycle
                end if
            end if
            call finish_block(mesh, leaf, eos, self%scratch(thread), self%rate(leaf), ledgers(i))
        end do
        !$omp end parallel
        call add_up(ledgers, ledger)
        call first_failure(self%scratch, error)
    end subroutine derive_all

    !> Add the ledgers of blocks.
    pure subroutine add_up(blocks, ledger)
        type(ledger_t), intent(in) :: blocks(:)
        type(ledger_t), intent(inout) :: ledger

        ledger%burnt = ledger%burnt + sum(blocks%burnt)
        ledger%work = ledger%work + sum(blocks%work)
        ledger%raised = ledger%raised + sum(blocks%raised)
    end subroutine add_up

    !> The failure of the first thread that has one, if any; no thread keeps its own.
    pure subroutine first_failure(scratch, error)
        type(scratch_t), intent(inout) :: scratch(:)
        type(error_t), intent(inout) :: error
        integer :: i

        do i = size(scratch), 1, -1
            if (scratch(i)%error%failed()) error = scratch(i)%error
            scratch(i)%error = error_t()
        end do
    end subroutine first_failure

    !> The largest rate of this rank's leaves.
    pure real(r8) function largest_rate(self, mesh) result(rate)
        class(planes_t), intent(in) :: self
        type(mesh_t), intent(in) :: mesh
        integer :: i

        rate = 0.0_r8
        do i = 1, size(mesh%local)
            rate = max(rate, self%rate(mesh%local(i)))
        end do
    end function largest_rate

    !> Time in the equation of state within the scheme, the mean over the threads.
    pure real(r8) function eos_seconds(self)
        class(planes_t), intent(in) :: self

        eos_seconds = sum(self%scratch%eos_seconds)/size(self%scratch)
    end function eos_seconds

end module ember_planes
