!> The unsplit scheme of all blocks of a rank: the threads' work on them, which streams the planes of each block once per step
!> (ember_hydro).
module ember_planes
    use ember_hydro, only: advance_block
    use ember_hydro_block, only: step_t
    use ember_hydro_state, only: finish_block, rate_of_block
    use ember_hydro_work, only: ledger_t, scratch_t
    use ember_mesh, only: mesh_t
    use ember_scheme, only: central, in_eos, in_fluxes, in_gravity, in_hydro, minmod, parts_t, scheme_t
    use pw_error, only: error_t
    use pw_kinds, only: r8
    use pw_threads, only: thread_number
    implicit none
    private

    type, extends(scheme_t), public :: planes_t
        real(r8) :: steepness = 2.0_r8                        !< of the limiter, see ember_slopes
        logical, private :: plain = .true.                    ! no species, no gravity
        type(scratch_t), allocatable, private :: scratch(:)   ! one per thread
        real(r8), allocatable, private :: rate(:)             ! (leaf) largest sum of (|v| + c)/width
    contains
        procedure :: start
        procedure :: advance
        procedure :: derive
        procedure :: largest_rate
        procedure :: eos_seconds
        procedure :: values_per_update
        procedure :: reconstruction
        procedure, private :: derive_leaves
    end type planes_t

contains

    !> As in scheme_t.
    subroutine start(self, threads, mesh, gravity)
        class(planes_t), intent(inout) :: self
        integer, intent(in) :: threads
        type(mesh_t), intent(in) :: mesh
        logical, intent(in) :: gravity
        integer :: i

        self%plain = mesh%n_species == 0 .and. .not. gravity
        allocate (self%scratch(threads))
        !$omp parallel private(i)
        i = thread_number() + 1
        call self%scratch(i)%start(mesh%n_species, gravity)
        !$omp end parallel
    end subroutine start

    !> One update of each block, then the correction of fluxes between levels. With species or gravity, the equation of state
    !> follows for all zones.
    subroutine advance(self, parts, step, dt, error)
        class(planes_t), intent(inout) :: self
        type(parts_t), intent(in) :: parts
        integer, intent(in) :: step
        real(r8), intent(in) :: dt
        type(error_t), intent(inout) :: error
        logical, allocatable :: touched(:)

        associate (mesh => parts%mesh, region => parts%region, unused => step)
            if (parts%gravity%on) then
                call region(in_gravity)%begin()
                call parts%gravity%measure(mesh, parts%comm, 0.5_r8*dt)
                call region(in_gravity)%end()
            end if
            call region(in_hydro)%begin()
            call advance_leaves(self, mesh, step_t(dt, self%steepness, parts%eos, parts%gravity, parts%flame, parts%registers), &
                                parts%lost, parts%ledger, error)
            call region(in_hydro)%end()
            call parts%comm%agree(error)
            if (error%failed()) return
            if (parts%adaptive) then
                call region(in_fluxes)%begin()
                allocate (touched(mesh%tree%n_leaves), source=.false.)
                call parts%registers%correct(mesh, parts%comm, touched)
                if (self%plain) call self%derive_leaves(parts, error, only=touched)
                call region(in_fluxes)%end()
                if (error%failed()) return
            end if
            if (self%plain) return
            call region(in_eos)%begin()
            call self%derive(parts, error)
            call region(in_eos)%end()
        end associate
    end subroutine advance

    !> Advance all leaves of this rank by a step; `lost` and `ledger` grow. Errors: those of advance_block.
    subroutine advance_leaves(self, mesh, step, lost, ledger, error)
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
    end subroutine advance_leaves

    !> As in scheme_t, and the rates of all leaves.
    subroutine derive(self, parts, error, fresh)
        class(planes_t), intent(inout) :: self
        type(parts_t), intent(in) :: parts
        type(error_t), intent(inout) :: error
        logical, intent(in), optional :: fresh(:)

        if (allocated(self%rate)) deallocate (self%rate)
        allocate (self%rate(parts%mesh%tree%n_leaves), source=0.0_r8)
        call self%derive_leaves(parts, error, fresh=fresh)
    end subroutine derive

    !> Derived variables and rates of all leaves, or of those that are marked in `only`; of those that `fresh` does not mark, if
    !> present, only the rates.
    subroutine derive_leaves(self, parts, error, only, fresh)
        class(planes_t), intent(inout) :: self
        type(parts_t), intent(in) :: parts
        type(error_t), intent(inout) :: error
        logical, intent(in), optional :: only(:), fresh(:)
        type(ledger_t), allocatable :: ledgers(:)
        integer :: i, leaf, thread

        associate (mesh => parts%mesh, eos => parts%eos)
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
        end associate
        call add_up(ledgers, parts%ledger)
        call first_failure(self%scratch, error)
        call parts%comm%agree(error)
    end subroutine derive_leaves

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
    real(r8) function largest_rate(self, mesh) result(rate)
        class(planes_t), intent(inout) :: self
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

    !> All variables of each zone, once.
    pure real(r8) function values_per_update(self, mesh)
        class(planes_t), intent(in) :: self
        type(mesh_t), intent(in) :: mesh

        associate (unused => self%plain)
        end associate
        values_per_update = 2.0_r8*mesh%n_used()
    end function values_per_update

    pure integer function reconstruction(self)
        class(planes_t), intent(in) :: self

        reconstruction = merge(minmod, central, nint(self%steepness) == 1)
    end function reconstruction

end module ember_planes
