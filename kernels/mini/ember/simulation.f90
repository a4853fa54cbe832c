!> A simulation: the mesh with everything that advances it in time.
module ember_simulation
    use ember_eos, only: eos_t
    use ember_flame, only: flame_t
    use ember_fluxes, only: registers_t
    use ember_gravity, only: gravity_t
    use ember_guards, only: guards_t
    use ember_hydro_work, only: ledger_t
    use ember_mesh, only: mesh_t, n_conserved, periodic
    use ember_parallel, only: comm_t
    use ember_parents, only: slots_needed
    use ember_problem, only: problem_t
    use ember_refinement, only: mark_leaves, regrid_settings_t
    use ember_regrid, only: regrid
    use ember_scheme, only: in_eos, in_guards, in_regrid, parts_t, region_name, scheme_t
    use pw_error, only: error_t, exit_usage
    use pw_kinds, only: i8, r8
    use pw_region, only: region_t, regions_open
    use pw_text, only: to_text
    implicit none
    private

    !> Maximum growth of a step from the previous one.
    real(r8), parameter :: most_growth = 2.0_r8

    type, public :: simulation_t
        type(comm_t) :: comm
        type(mesh_t) :: mesh
        class(eos_t), allocatable :: eos
        class(problem_t), allocatable :: problem
        type(gravity_t) :: gravity
        type(flame_t) :: flame
        type(regrid_settings_t) :: refinement
        class(scheme_t), allocatable :: scheme
        logical :: adaptive = .true.
        integer :: regrid_interval = 4            !< steps
        real(r8) :: cfl = 0.8_r8                  !< share of the largest stable step
        real(r8) :: first_step = 1.0_r8           !< share of that, of the first step
        real(r8) :: time = 0.0_r8, dt = 0.0_r8    !< dt: of the previous step, 0 at the beginning
        integer :: step = 0
        integer(i8) :: zone_updates = 0, regrids = 0
        integer(i8) :: eos_evaluations = 0        !< of zones in steps, if separate from the scheme
        !> The outflow from this rank's blocks, of the conserved variables and species; and other changes there.
        real(r8), allocatable :: lost(:)
        type(ledger_t) :: ledger
        type(region_t) :: region(7)
        type(guards_t), private :: guards
        type(registers_t), private :: registers
    contains
        procedure :: prepare
        procedure :: place_initial_state
        procedure :: advance
        procedure :: is_plain
        procedure :: whole_ledger
        procedure :: eos_seconds
        procedure, private :: take_slots, fill_leaves, new_tree, adapt_mesh, adapt_if_due, fill_guards, next_step, parts
    end type simulation_t

contains

    !> Whether only the Euler equations are solved: no species, no gravity.
    pure logical function is_plain(self)
        class(simulation_t), intent(in) :: self

        is_plain = self%mesh%n_species == 0 .and. .not. self%gravity%on
    end function is_plain

    !> Work space of `threads` threads, for the mesh's species and with gravity or without; the regions' names.
    subroutine prepare(self, threads)
        class(simulation_t), intent(inout) :: self
        integer, intent(in) :: threads
        integer :: i

        call self%scheme%start(threads, self%mesh, self%gravity%on)
        allocate (self%lost(n_conserved + self%mesh%n_species), source=0.0_r8)
        do i = 1, size(self%region)
            self%region(i)%name = trim(region_name(i))
        end do
        call regions_open()
    end subroutine prepare

    !> The problem's initial state on a mesh that is refined for it. `roots`: blocks of level 0 in each direction.
    !> Exit code 2 if the container has too few blocks.
    subroutine place_initial_state(self, roots, error)
        class(simulation_t), intent(inout), target :: self
        integer, intent(in) :: roots(3)
        type(error_t), intent(inout) :: error
        logical :: changed
        integer :: pass

        call self%mesh%tree%start(self%mesh%dims, roots, self%mesh%boundary(1, :) == periodic, self%mesh%lowest_level, error)
        if (error%failed()) return
        call self%take_slots(error)
        if (error%failed()) return
        call self%fill_leaves(error)
        if (error%failed()) return
        call self%new_tree()
        if (.not. self%adaptive) return
        do pass = self%mesh%lowest_level + 1, self%mesh%highest_level
            call self%adapt_mesh(changed, error)
            if (error%failed() .or. .not. changed) return
            call self%fill_leaves(error)
            if (error%failed()) return
        end do
    end subroutine place_initial_state

    !> Assign slots of the container to the leaves of this rank.
    subroutine take_slots(self, error)
        class(simulation_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        integer :: needed(0:self%mesh%n_ranks - 1), i

        associate (mesh => self%mesh)
            call mesh%tree%partition(mesh%n_ranks, mesh%tree%owner)
            call mesh%note_owners()
            needed = slots_needed(mesh%tree, mesh%parents, mesh%n_ranks)
            if (needed(mesh%rank) > mesh%capacity) call error%raise(exit_usage, 'the mesh has '// &
                to_text(sum(needed))//' blocks, but a rank has space for only '//to_text(mesh%capacity)//' of its '// &
                to_text(needed(mesh%rank)), 'place_initial_state', 'use more --memory or --max-blocks, or a lower --lowest-level')
            call self%comm%agree(error)
            if (error%failed()) return
            if (allocated(mesh%slot)) deallocate (mesh%slot)
            allocate (mesh%slot(mesh%tree%n_leaves), source=0)
            do i = 1, size(mesh%local)
                mesh%slot(mesh%local(i)) = mesh%take_slot()
            end do
        end associate
    end subroutine take_slots

    !> The problem's state in all leaves, by the thread that will process them.
    subroutine fill_leaves(self, error)
        class(simulation_t), intent(inout), target :: self
        type(error_t), intent(inout) :: error
        integer :: i

        !$omp parallel do schedule(static)
        do i = 1, size(self%mesh%local)
            call self%problem%fill(self%mesh, self%mesh%local(i))
        end do
        call self%scheme%derive(self%parts(), error)
    end subroutine fill_leaves

    !> What the scheme uses.
    function parts(self)
        class(simulation_t), intent(inout), target :: self
        type(parts_t) :: parts

        parts%mesh => self%mesh
        parts%comm => self%comm
        parts%guards => self%guards
        parts%registers => self%registers
        parts%eos => self%eos
        parts%gravity => self%gravity
        parts%flame => self%flame
        parts%region => self%region
        parts%lost => self%lost
        parts%ledger => self%ledger
        parts%adaptive = self%adaptive
    end function parts

    !> Set up the lists that depend on the tree.
    subroutine new_tree(self)
        class(simulation_t), intent(inout) :: self

        call self%guards%build(self%mesh)
        call self%registers%build(self%mesh)
    end subroutine new_tree

    !> Refine and coarsen once. Guard cells are filled on entry if `filled` is present and true.
    subroutine adapt_mesh(self, changed, error, filled)
        class(simulation_t), intent(inout), target :: self
        logical, intent(out) :: changed
        type(error_t), intent(inout) :: error
        logical, intent(in), optional :: filled
        integer, allocatable :: mark(:)
        logical, allocatable :: fresh(:)
        logical :: fill

        fill = .true.
        if (present(filled)) fill = .not. filled
        if (fill) call self%guards%fill(self%mesh, self%comm)
        call mark_leaves(self%mesh, self%refinement, self%comm, mark)
        call regrid(self%mesh, mark, self%comm, error, changed, fresh)
        if (error%failed() .or. .not. changed) return
        self%regrids = self%regrids + 1
        call self%new_tree()
        if (self%is_plain()) fresh = .true.
        call self%scheme%derive(self%parts(), error, fresh)
    end subroutine adapt_mesh

    !> One step, which does not go beyond `end_time`. Exit code 1 if a state has no pressure, 2 if blocks run out.
    subroutine advance(self, end_time, error)
        class(simulation_t), intent(inout), target :: self
        real(r8), intent(in) :: end_time
        type(error_t), intent(inout) :: error
        real(r8) :: dt
        integer(i8) :: zones

        if (self%scheme%from_guards) call self%fill_guards()
        call self%adapt_if_due(error)
        if (error%failed()) return
        dt = self%next_step(end_time)
        zones = int(self%mesh%tree%n_leaves, i8)*product(int(self%mesh%zones(), i8))
        call self%scheme%advance(self%parts(), self%step + 1, dt, error)
        if (error%failed()) return
        if (.not. self%is_plain()) self%eos_evaluations = self%eos_evaluations + zones
        self%step = self%step + 1
        self%time = merge(end_time, self%time + dt, self%time + dt >= end_time)
        self%zone_updates = self%zone_updates + zones
    end subroutine advance

    subroutine fill_guards(self)
        class(simulation_t), intent(inout) :: self

        call self%region(in_guards)%begin()
        call self%guards%fill(self%mesh, self%comm)
        call self%region(in_guards)%end()
    end subroutine fill_guards

    !> Adapt the mesh every `regrid_interval` steps, and fill the guard cells again if they were filled.
    subroutine adapt_if_due(self, error)
        class(simulation_t), intent(inout), target :: self
        type(error_t), intent(inout) :: error
        logical :: changed

        if (.not. self%adaptive .or. self%step == 0 .or. modulo(self%step, self%regrid_interval) /= 0) return
        call self%region(in_regrid)%begin()
        call self%adapt_mesh(changed, error, filled=self%scheme%from_guards)
        call self%region(in_regrid)%end()
        if (changed .and. self%scheme%from_guards .and. .not. error%failed()) call self%fill_guards()
    end subroutine adapt_if_due

    !> The length of the next step, which does not go beyond `end_time`; `dt` becomes what it would be without that end.
    real(r8) function next_step(self, end_time)
        class(simulation_t), intent(inout) :: self
        real(r8), intent(in) :: end_time
        real(r8) :: rate

        rate = self%scheme%largest_rate(self%mesh)
        call self%comm%all_max(rate)
        next_step = self%cfl/rate
        if (self%dt > 0.0_r8) then
            next_step = min(next_step, most_growth*self%dt)
        else
            next_step = self%first_step*next_step
        end if
        self%dt = next_step
        if (self%time + next_step >= end_time) next_step = end_time - self%time
    end function next_step

    !> The ledgers of all ranks together.
    function whole_ledger(self) result(ledger)
        class(simulation_t), intent(in) :: self
        type(ledger_t) :: ledger
        real(r8), allocatable :: all(:)

        call self%comm%all_gather([self%ledger%burnt, self%ledger%work, self%ledger%raised], all)
        ledger = ledger_t(sum(all(1::3)), sum(all(2::3)), sum(all(3::3)))
    end function whole_ledger

    !> Time in the equation of state: per steps, if it has its own region; otherwise within the scheme, the mean over the
    !> threads.
    pure real(r8) function eos_seconds(self)
        class(simulation_t), intent(in) :: self

        eos_seconds = self%region(in_eos)%seconds
        if (self%is_plain()) eos_seconds = self%scheme%eos_seconds()
    end function eos_seconds

end module ember_simulation
