!> A run of ember from its parameters to its record: time loop, output, log, validation, summary.
module ember_driver
    use ember_container, only: container_create
    use ember_domain, only: largest_density, totals
    use ember_figures, only: figures_of, print_summary
    use ember_hydro_work, only: ledger_t
    use ember_log, only: log_t
    use ember_norms, only: norms_of
    use ember_output_info, only: append, name_length, output_info_t
    use ember_parallel, only: comm_t
    use ember_parameters, only: parameters_t
    use ember_physics, only: set_up_physics
    use ember_planes, only: planes_t
    use ember_plotfile, only: plotfile_name, write_plotfile
    use ember_proofs, only: join_costs, prove_memory
    use ember_reference, only: norms_row, state_key
    use ember_scheme, only: in_output
    use ember_simulation, only: simulation_t
    use ember_split, only: split_t
    use ember_validation, only: validate_state
    use pw_error, only: error_t, exit_check
    use pw_evidence, only: first_touch_all, first_touch_t, put_regions
    use pw_kinds, only: i8, r8
    use pw_options, only: options_t
    use pw_pages, only: pages_begin, pages_policy_t, pages_verify
    use pw_record, only: configuration_t, placement_t, record_t, validation_t
    use pw_record_json, only: record_to_json
    use pw_region, only: region_t, regions_reset
    use pw_system, only: append_line, page_faults, utc_now
    use pw_threads, only: placement_begin, placement_update, threads_begin
    implicit none
    private

    !> A run: the simulation, and its other state.
    type, public :: run_t
        type(parameters_t) :: parameters
        type(simulation_t) :: simulation
        type(log_t), private :: log
        type(first_touch_t), private :: first_touched
        type(placement_t), private :: placement
        integer(i8), private :: minor = 0, major = 0              ! page faults of the time loop
        real(r8), allocatable, private :: seconds(:)              ! of each step
        real(r8), allocatable, private :: first_totals(:), last_totals(:)
        real(r8), private :: first_density = 0.0_r8               ! the largest
        integer, private :: plots = 0                             ! number written so far
        real(r8), private :: next_plot = 0.0_r8
    contains
        procedure :: begin
        procedure :: loop
        procedure :: finish
        procedure, private :: set_up, write_files, plot_is_due, write_log, describe, check_state
    end type run_t

contains

    !> Memory on the requested pages, threads, mesh and initial state.
    !> Exit codes: 2 contradictory parameters, or too little memory; 3 pages; 4 the system.
    subroutine begin(self, options, error)
        class(run_t), intent(inout), target :: self
        type(options_t), intent(in) :: options
        type(error_t), intent(inout) :: error

        call self%set_up(error)
        if (error%failed()) return
        call self%simulation%place_initial_state(self%parameters%roots, error)
        if (error%failed()) return
        call regions_reset()
        self%first_totals = totals(self%simulation%mesh, self%simulation%comm)
        self%simulation%ledger = ledger_t()
        self%first_density = largest_density(self%simulation%mesh, self%simulation%comm)
        if (self%simulation%comm%rank == 0) call self%log%open(self%parameters%log, self%simulation%is_plain(), error)
        call self%simulation%comm%agree(error)
        if (error%failed()) return
        call self%write_files(options, error)
    end subroutine begin

    !> Everything that does not depend on the state.
    subroutine set_up(self, error)
        class(run_t), intent(inout), target :: self
        type(error_t), intent(inout) :: error
        type(pages_policy_t) :: policy

        associate (given => self%parameters, simulation => self%simulation, mesh => self%simulation%mesh)
            call threads_begin(int(given%threads, i8), error)
            call simulation%comm%agree(error)
            if (error%failed()) return
            call given%set_up_mesh(mesh)
            mesh%rank = simulation%comm%rank
            mesh%n_ranks = simulation%comm%n_ranks
            policy = given%policy
            call pages_begin(policy, error)
            if (.not. error%failed()) call container_create(mesh, given%container_bytes(mesh), policy, error, given%static)
            call simulation%comm%agree(error)
            if (error%failed()) return
            call first_touch_all([mesh%memory], .true., .false., self%first_touched)
            call pages_verify([mesh%memory], policy, error)
            call simulation%comm%agree(error)
            if (error%failed()) return

            call set_up_physics(given, policy, simulation, error)
            if (error%failed()) return
            if (given%split) then
                simulation%scheme = split_t(steep=given%steep)
            else
                simulation%scheme = planes_t(steepness=given%steepness)
            end if
            call simulation%prepare(given%threads)
            simulation%adaptive = given%highest_level > given%lowest_level
            simulation%regrid_interval = given%regrid_interval
            simulation%refinement%variables = given%refine_variables
            simulation%refinement%refine_above = given%refine_above
            simulation%refinement%coarsen_below = given%coarsen_below
            simulation%refinement%filter = given%refine_filter
            simulation%cfl = given%cfl
            simulation%first_step = given%first_step
            if (.not. allocated(self%seconds)) allocate (self%seconds(0))
        end associate
    end subroutine set_up

    !> The time loop.
    subroutine loop(self, options, error)
        class(run_t), intent(inout), target :: self
        type(options_t), intent(in) :: options
        type(error_t), intent(inout) :: error
        integer(i8) :: minor, major
        type(region_t) :: step
        real(r8) :: seconds

        step%name = 'step'
        call placement_begin(self%placement)
        call page_faults(minor, major)
        associate (simulation => self%simulation, given => self%parameters)
            do while (simulation%step < given%steps .and. simulation%time < given%end_time)
                call step%begin()
                call simulation%advance(given%end_time, error)
                call step%end(seconds)
                call placement_update(self%placement)
                if (error%failed()) return
                self%seconds = [self%seconds, seconds]
                call self%write_files(options, error)
                if (error%failed()) return
                call self%write_log(error)
                if (error%failed()) return
            end do
        end associate
        call page_faults(self%minor, self%major)
        self%minor = self%minor - minor
        self%major = self%major - major
        self%last_totals = totals(self%simulation%mesh, self%simulation%comm)
    end subroutine loop

    !> Write a row of the log if one is due.
    subroutine write_log(self, error)
        class(run_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        real(r8), allocatable :: sums(:)
        type(ledger_t) :: ledger
        real(r8) :: densest

        associate (simulation => self%simulation, given => self%parameters)
            if (len(given%log) == 0 .or. modulo(simulation%step, given%log_interval) /= 0) return
            sums = totals(simulation%mesh, simulation%comm)
            densest = 0.0_r8
            if (.not. simulation%is_plain()) then
                densest = largest_density(simulation%mesh, simulation%comm)
                ledger = simulation%whole_ledger()
                ! At the present time, because it was half a step ahead of the previous step.
                if (simulation%gravity%on) call simulation%gravity%measure(simulation%mesh, simulation%comm, 0.0_r8)
            end if
            if (simulation%comm%rank == 0) &
                call self%log%write(simulation, sums, self%seconds(size(self%seconds)), densest, ledger, error)
            call simulation%comm%agree(error)
        end associate
    end subroutine write_log

    !> Write a plotfile if one is due at this step or time.
    subroutine write_files(self, options, error)
        class(run_t), intent(inout) :: self
        type(options_t), intent(in) :: options
        type(error_t), intent(inout) :: error
        type(output_info_t) :: info

        if (.not. self%plot_is_due()) return
        associate (simulation => self%simulation, given => self%parameters)
            call simulation%region(in_output)%begin()
            call self%describe(options, info)
            call write_plotfile(plotfile_name(given%output, self%plots), simulation%mesh, simulation%comm, info, error, &
                                given%single_precision)
            self%plots = self%plots + 1
            call simulation%region(in_output)%end()
        end associate
    end subroutine write_files

    !> Whether a plotfile is due, by steps or by time, or as the last one; `next_plot` is advanced.
    logical function plot_is_due(self) result(due)
        class(run_t), intent(inout) :: self

        associate (simulation => self%simulation, interval => self%parameters%plot_interval, period => self%parameters%plot_time)
            due = .false.
            if (interval > 0) due = modulo(simulation%step, interval) == 0
            if (period > 0.0_r8 .and. simulation%time >= self%next_plot) due = .true.
            do while (period > 0.0_r8 .and. simulation%time >= self%next_plot)
                self%next_plot = self%next_plot + period
            end do
            if (interval == 0 .and. period <= 0.0_r8) return
            if (simulation%time >= self%parameters%end_time .or. simulation%step >= self%parameters%steps) due = .true.
        end associate
    end function plot_is_due

    !> The contents of plotfiles except the mesh.
    subroutine describe(self, options, info)
        class(run_t), intent(in) :: self
        type(options_t), intent(in) :: options
        type(output_info_t), intent(out) :: info
        character(:), allocatable :: value
        integer :: i

        info%time = self%simulation%time
        info%dt = self%simulation%dt
        info%step = self%simulation%step
        info%problem = self%parameters%problem
        info%species = [character(name_length) :: self%parameters%species]
        allocate (info%parameters(0))
        i = 1
        do while (len(options%name_of(i)) > 0)
            call options%get(options%name_of(i), value)
            if (len(value) > 0) call append(info%parameters, options%name_of(i), value)
            i = i + 1
        end do
    end subroutine describe

    !> Validate the result, observe the pages, and write record and summary. Exit code 1 if validation fails.
    subroutine finish(self, options, configuration, error)
        class(run_t), intent(inout) :: self
        type(options_t), intent(in) :: options
        type(configuration_t), intent(in) :: configuration
        type(error_t), intent(inout) :: error
        type(record_t) :: record

        call self%log%close()
        record%kernel = 'ember'
        record%started = utc_now()
        record%configuration = configuration
        record%seconds = self%seconds
        associate (simulation => self%simulation, mesh => self%simulation%mesh)
            record%elements = int(mesh%tree%n_leaves, i8)*product(int(mesh%zones(), i8))
            record%element_bytes = 8_i8*mesh%n_variables
            record%arrays = mesh%n_ranks
            call join_costs(simulation, self%first_touched, [self%minor, self%major], self%placement, record)
            ! Of this rank.
            call put_regions(record, 'step', error)
            call simulation%comm%agree(error)
            if (error%failed()) return
            record%traffic%bytes_stream = 8.0_r8*simulation%scheme%values_per_update(mesh)*simulation%zone_updates &
                                          /max(1, size(self%seconds))
            record%traffic%bytes_hardware = record%traffic%bytes_stream
            call prove_memory(simulation, record%pages, error)
            call simulation%comm%agree(error)
            if (error%failed()) return
            call self%check_state(options, record%validation, error)
            call simulation%comm%agree(error)
            if (error%failed()) return
            record%metrics = figures_of(simulation, self%seconds, self%first_density, self%parameters%errors)
            if (simulation%comm%rank == 0) then
                if (len(self%parameters%record) > 0) &
                    call append_line(self%parameters%record, record_to_json(record, options), error)
                call print_summary(simulation, self%parameters, self%seconds, record)
            end if
            call simulation%comm%agree(error)
        end associate
        if (.not. record%validation%passed .and. .not. error%failed()) &
            call error%raise(exit_check, 'the result failed its check: '//record%validation%method, 'ember_driver', &
                             'do not use this configuration; try another compiler version')
    end subroutine finish

    !> Check the final state, and append its norms to a file if one is named.
    subroutine check_state(self, options, validation, error)
        class(run_t), intent(inout) :: self
        type(options_t), intent(in) :: options
        type(validation_t), intent(out) :: validation
        type(error_t), intent(inout) :: error
        real(r8), allocatable :: norm(:, :)
        character(:), allocatable :: key

        norm = norms_of(self%simulation)
        call state_key(options, self%simulation%step, key, error)
        if (error%failed()) return
        if (len(self%parameters%norms) > 0 .and. self%simulation%comm%rank == 0) &
            call append_line(self%parameters%norms, norms_row(key, norm), error)
        call validate_state(self%simulation, self%first_totals, self%last_totals, key, norm, validation)
    end subroutine check_state

end module ember_driver
