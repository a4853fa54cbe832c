!> The directionally split scheme of all blocks of a rank: their sweeps, their equation of state and the time step.
!>
!> As in FLASH, each pass visits all blocks before the next one begins: guard cells, pencils, fluxes between levels, equation of
!> state, for one direction after the other: x, y, z in odd steps, and in even ones z, y, x.
module ember_split
    use ember_mesh, only: mesh_t, n_conserved
    use ember_scheme, only: in_fluxes, in_guards, in_hydro, parabolic, parts_t, scheme_t
    use ember_sweeps, only: block_rate, derive_block, sweep_block, sweep_t, sweep_work_t, values_of_sweeps => values_per_update
    use pw_error, only: error_t
    use pw_kinds, only: r8
    use pw_region, only: region_handle
    use pw_threads, only: thread_number
    implicit none
    private

    type, extends(scheme_t), public :: split_t
        logical :: steep = .true.      !< contacts are steepened
        type(sweep_work_t), allocatable, private :: work(:)   ! one per thread
    contains
        procedure :: start
        procedure :: advance
        procedure :: derive
        procedure :: largest_rate
        procedure :: eos_seconds
        procedure :: values_per_update
        procedure :: reconstruction
    end type split_t

contains

    !> As in scheme_t; without species and gravity.
    subroutine start(self, threads, mesh, gravity)
        class(split_t), intent(inout) :: self
        integer, intent(in) :: threads
        type(mesh_t), intent(in) :: mesh
        logical, intent(in) :: gravity
        integer :: i

        if (gravity .or. mesh%n_species > 0) error stop 'ember_split: no species and no gravity'
        self%from_guards = .false.
        allocate (self%work(threads))
        !$omp parallel private(i)
        i = thread_number() + 1
        allocate (self%work(i)%fraction(1, 0))
        ! A block of a simple equation of state takes less time than reading counters.
        self%work(i)%in_eos = region_handle('eos', counted=.false.)
        !$omp end parallel
    end subroutine start

    !> All sweeps. As FLASH's timer of hydrodynamics, the region includes guard cells and flux correction.
    subroutine advance(self, parts, step, dt, error)
        class(split_t), intent(inout) :: self
        type(parts_t), intent(in) :: parts
        integer, intent(in) :: step
        real(r8), intent(in) :: dt
        type(error_t), intent(inout) :: error
        type(sweep_t) :: sweep
        logical, allocatable :: touched(:)
        integer :: s

        allocate (touched(parts%mesh%tree%n_leaves))
        sweep%dt = dt
        sweep%steep = self%steep
        if (parts%adaptive) sweep%registers => parts%registers
        call parts%region(in_hydro)%begin()
        do s = 1, parts%mesh%dims
            sweep%direction = merge(s, parts%mesh%dims + 1 - s, modulo(step, 2) == 1)
            call parts%region(in_guards)%begin()
            call parts%guards%fill(parts%mesh, parts%comm)
            call parts%region(in_guards)%end()
            call sweep_leaves(parts%mesh, sweep, self%work, parts%lost)
            if (parts%adaptive) then
                call parts%region(in_fluxes)%begin()
                call parts%registers%correct(parts%mesh, parts%comm, touched, sweep%direction)
                call parts%region(in_fluxes)%end()
            end if
            call self%derive(parts, error)
            if (error%failed()) exit
        end do
        call parts%region(in_hydro)%end()
    end subroutine advance

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

    !> As in scheme_t.
    subroutine derive(self, parts, error, fresh)
        class(split_t), intent(inout) :: self
        type(parts_t), intent(in) :: parts
        type(error_t), intent(inout) :: error
        logical, intent(in), optional :: fresh(:)
        integer :: i, thread

        !$omp parallel do schedule(static) private(thread)
        do i = 1, size(parts%mesh%local)
            thread = thread_number() + 1
            if (self%work(thread)%error%failed()) cycle
            if (present(fresh)) then
                if (.not. fresh(parts%mesh%local(i))) cycle
            end if
            call derive_block(parts%mesh, parts%mesh%local(i), parts%eos, self%work(thread))
        end do
        do i = size(self%work), 1, -1
            if (self%work(i)%error%failed()) error = self%work(i)%error
            self%work(i)%error = error_t()
        end do
        call parts%comm%agree(error)
    end subroutine derive

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

    pure real(r8) function values_per_update(self, mesh)
        class(split_t), intent(in) :: self
        type(mesh_t), intent(in) :: mesh

        associate (unused => self%steep)
        end associate
        values_per_update = values_of_sweeps(mesh%block, mesh%dims)
    end function values_per_update

    pure integer function reconstruction(self)
        class(split_t), intent(in) :: self

        associate (unused => self%steep)
        end associate
        reconstruction = parabolic
    end function reconstruction

end module ember_split
