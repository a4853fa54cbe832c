!> The directionally split scheme of all blocks of a rank: their sweeps, their equation of state and the time step.
!>
!> As in FLASH, each pass visits all blocks before the next one begins: guard cells, pencils, fluxes between levels, equation of
!> state, for one direction after the other: x, y, z in odd steps, and in even ones z, y, x.
module ember_split
    use ember_eos, only: eos_t
    use ember_fluxes, only: registers_t
    use ember_guards, only: guards_t
    use ember_mesh, only: mesh_t, n_conserved
    use ember_parallel, only: comm_t
    use ember_sweeps, only: block_rate, derive_block, sweep_block, sweep_t, sweep_work_t
    use pw_error, only: error_t
    use pw_kinds, only: r8
    use pw_region, only: region_handle, region_t
    use pw_threads, only: thread_number
    implicit none
    private

    type, public :: split_t
        logical :: on = .false.        !< this scheme is used
        logical :: steep = .true.      !< contacts are steepened
        type(sweep_work_t), allocatable, private :: work(:)   ! one per thread
    contains
        procedure :: start
        procedure :: sweep_all
        procedure :: derive_all
        procedure :: largest_rate
        procedure :: eos_seconds
    end type split_t

    !> The parts of a mesh that a step uses.
    type, public :: split_parts_t
        type(mesh_t), pointer :: mesh => null()
        type(comm_t), pointer :: comm => null()
        type(guards_t), pointer :: guards => null()
        type(registers_t), pointer :: registers => null()     !< null if all blocks have one level
        class(eos_t), pointer :: eos => null()
        type(region_t), pointer :: in_guards => null(), in_fluxes => null()
    end type split_parts_t

contains

    !> Work space of `threads` threads.
    subroutine start(self, threads)
        class(split_t), intent(inout) :: self
        integer, intent(in) :: threads
        integer :: i

        allocate (self%work(threads))
        !$omp parallel private(i)
        i = thread_number() + 1
        allocate (self%work(i)%fraction(1, 0))
        ! A block of a simple equation of state takes less time than reading counters.
        self%work(i)%in_eos = region_handle('eos', counted=.false.)
        !$omp end parallel
    end subroutine start

    !> Advance the state by `dt`: step number `step`, counted from 1. `lost` grows by what left this rank's blocks through
    !> outflow boundaries. Errors: those of derive_all.
    subroutine sweep_all(self, parts, step, dt, lost, error)
        class(split_t), intent(inout) :: self
        type(split_parts_t), intent(in) :: parts
        integer, intent(in) :: step
        real(r8), intent(in) :: dt
        real(r8), intent(inout) :: lost(:)
        type(error_t), intent(inout) :: error
        type(sweep_t) :: sweep
        logical, allocatable :: touched(:)
        integer :: s

        allocate (touched(parts%mesh%tree%n_leaves))
        sweep%dt = dt
        sweep%steep = self%steep
        sweep%registers => parts%registers
        do s = 1, parts%mesh%dims
            sweep%direction = merge(s, parts%mesh%dims + 1 - s, modulo(step, 2) == 1)
            call parts%in_guards%begin()
            call parts%guards%fill(parts%mesh, parts%comm)
            call parts%in_guards%end()
            call sweep_leaves(parts%mesh, sweep, self%work, lost)
            if (associated(parts%registers)) then
                call parts%in_fluxes%begin()
                call parts%registers%correct(parts%mesh, parts%comm, touched, sweep%direction)
                call parts%in_fluxes%end()
            end if
            call self%derive_all(parts%mesh, parts%eos, error)
            call parts%comm%agree(error)
            if (error%failed()) return
        end do
    end subroutine sweep_all

    !> Sweep the leaves of this rank.
    subroutine sweep_leaves(mesh, sweep, work, lost)
        type(mesh_t), intent(inout) :: mesh
        type(sweep_t), intent(in) :: sweep
        type(sweep_work_t), intent(inout) :: work(:)
        real(r8), intent(inout) :: lost(:)
        real(r8), allocatable :: of_leaf(:, :)
        integer :: i

        allocate (of_leaf(n_conserved, size(mesh%local)), source=0.0_r8)
        !$omp parallel do schedule(static)
        do i = 1, size(mesh%local)
            call sweep_block(mesh, mesh%local(i), sweep, work(thread_number() + 1), of_leaf(:, i))
        end do
        lost = lost + sum(of_leaf, dim=2)
    end subroutine sweep_leaves

    !> The equation of state for the leaves of this rank, or those that are marked in `only`. Error: exit_check if a zone has
    !> no pressure.
    subroutine derive_all(self, mesh, eos, error, only)
        class(split_t), intent(inout) :: self
        type(mesh_t), intent(inout) :: mesh
        class(eos_t), intent(in) :: eos
        type(error_t), intent(inout) :: error
        logical, intent(in), optional :: only(:)
        integer :: i, thread

        !$omp parallel do schedule(static) private(thread)
        do i = 1, size(mesh%local)
            thread = thread_number() + 1
            if (self%work(thread)%error%failed()) cycle
            if (present(only)) then
                if (.not. only(mesh%local(i))) cycle
            end if
            call derive_block(mesh, mesh%local(i), eos, self%work(thread))
        end do
        do i = size(self%work), 1, -1
            if (self%work(i)%error%failed()) error = self%work(i)%error
            self%work(i)%error = error_t()
        end do
    end subroutine derive_all

    !> The largest (|v| + c)/width of this rank's zones.
    real(r8) function largest_rate(self, mesh) result(rate)
        class(split_t), intent(inout) :: self
        type(mesh_t), intent(in) :: mesh
        real(r8) :: of_leaf
        integer :: i

        rate = 0.0_r8
        !$omp parallel do schedule(static) private(of_leaf) reduction(max: rate)
        do i = 1, size(mesh%local)
            call block_rate(mesh, mesh%local(i), self%work(thread_number() + 1), of_leaf)
            rate = max(rate, of_leaf)
        end do
    end function largest_rate

    !> Time in the equation of state, the mean over the threads.
    pure real(r8) function eos_seconds(self)
        class(split_t), intent(in) :: self

        eos_seconds = sum(self%work%eos_seconds)/size(self%work)
    end function eos_seconds

end module ember_split
