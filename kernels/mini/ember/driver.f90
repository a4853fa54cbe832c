!> A run of ember from its parameters to its record: time loop, output, log, validation, summary.
module ember_driver
    use ember_container, only: container_create
    use ember_domain, only: largest_density, totals
    use ember_figures, only: figures_of, print_summary
    use ember_hydro_work, only: ledger_t
    use ember_log, only: log_t
    use ember_mesh, only: mesh_t
    use ember_norms, only: norms_of
    use ember_output, only: checkpoint_name, name_length, output_info_t, plotfile_name, read_checkpoint, read_checkpoint_head, &
        remove_file, write_checkpoint, write_plotfile
    use ember_parallel, only: comm_t
    use ember_parameters, only: parameters_t
    use ember_physics, only: set_up_physics
    use ember_proofs, only: join_costs, prove_memory
    use ember_reference, only: norms_row, state_key
    use ember_simulation, only: in_output, simulation_t
    use ember_validation, only: validate_state
    use pw_error, only: error_t, exit_check
    use pw_evidence, only: populate, populated_t, put_regions
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
        type(populated_t), private :: populated
        type(placement_t), private :: placement
        integer(i8), private :: minor = 0, major = 0              ! page faults of the time loop
        real(r8), allocatable, private :: seconds(:)              ! of each step
        real(r8), allocatable, private :: first_totals(:), last_totals(:)
        real(r8), private :: first_density = 0.0_r8               ! the largest
        integer, private :: plots = 0, checkpoints = 0            ! number written so far
        real(r8), private :: next_plot = 0.0_r8, next_checkpoint = 0.0_r8
        integer, private :: first_step = 0                        ! of this process
    contains
        procedure :: begin
        procedure :: loop
        procedure :: finish
        procedure, private :: set_up, go_on, write_files, write_log, describe, check_state
    end type run_t

    public :: inherit_parameters

contains

    !> With --restart, the parameters of the checkpoint's run, unless this run sets others; called by all
    !> ranks before `read_parameters`. Errors: those of the checkpoint.
    subroutine inherit_parameters(options, comm, error)
        type(options_t), intent(inout) :: options
        type(comm_t), intent(in) :: comm
        type(error_t), intent(inout) :: error
        character(:), allocatable :: path
        type(output_info_t) :: info
        type(mesh_t) :: mesh
        integer :: i

        call options%get('restart', path)
        if (len(path) == 0) return
        call read_checkpoint_head(path, mesh, comm, info, error)
        if (error%failed()) return
        do i = 1, size(info%parameters)
            ! Both set the size of the container.
            if (info%parameters(i)%name == 'memory' .and. options%given('max-blocks')) cycle
            if (info%parameters(i)%name == 'max-blocks' .and. options%given('memory')) cycle
            call options%inherit(trim(info%parameters(i)%name), info%parameters(i)%value, error)
            if (error%failed()) return
        end do
    end subroutine inherit_parameters

    !> Memory on the requested pages, threads, mesh and initial state or restart.
    !> Exit codes: 2 contradictory parameters, or too little memory; 3 pages; 4 the system.
    subroutine begin(self, options, error)
        class(run_t), intent(inout) :: self
        type(options_t), intent(in) :: options
        type(error_t), intent(inout) :: error

        call self%set_up(error)
        if (error%failed()) return
        if (len(self%parameters%restart) > 0) then
            call self%go_on(error)
        else
            call self%simulation%place_initial_state(self%parameters%roots, error)
        end if
        if (error%failed()) return
        call regions_reset()
        self%first_totals = totals(self%simulation%mesh, self%simulation%comm)
        self%simulation%ledger = ledger_t()
        self%first_density = largest_density(self%simulation%mesh, self%simulation%comm)
        self%first_step = self%simulation%step
        if (self%simulation%comm%rank == 0) call self%log%open(self%parameters%log, self%simulation, error)
        call self%simulation%comm%agree(error)
        if (error%failed()) return
        if (self%simulation%step == 0) call self%write_files(options, error)
    end subroutine begin

    !> Everything that does not depend on the state.
    subroutine set_up(self, error)
        class(run_t), intent(inout) :: self
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
            call populate([mesh%memory], .true., self%populated)
            call pages_verify([mesh%memory], policy, error)
            call simulation%comm%agree(error)
            if (error%failed()) return

            call set_up_physics(given, policy, simulation, error)
            if (error%failed()) return
            simulation%split%on = given%split
            simulation%split%steep = given%steep
            call simulation%prepare(given%threads)
            simulation%adaptive = given%highest_level > given%lowest_level
            simulation%regrid_interval = given%regrid_interval
            simulation%refinement%variables = given%refine_variables
            simulation%refinement%refine_above = given%refine_above
            simulation%refinement%coarsen_below = given%coarsen_below
            simulation%refinement%filter = given%refine_filter
            simulation%cfl = given%cfl
            simulation%first_step = given%first_step
            simulation%steepness = given%steepness
            if (.not. allocated(self%seconds)) allocate (self%seconds(0))
            self%next_checkpoint = given%checkpoint_time
        end associate
    end subroutine set_up

    !> Continue from a checkpoint.
    subroutine go_on(self, error)
        class(run_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        type(output_info_t) :: info
        logical :: found

        associate (simulation => self%simulation)
            call read_checkpoint(self%parameters%restart, simulation%mesh, simulation%comm, info, error)
            if (error%failed()) return
            simulation%time = info%time
            simulation%dt = info%dt
            simulation%step = info%step
            call info%get('plotfiles', self%plots, found)
            call info%get('checkpoints', self%checkpoints, found)
            call info%get('next plot time', self%next_plot, found)
            call info%get('next checkpoint time', self%next_checkpoint, found)
            call simulation%take_over(error)
        end associate
    end subroutine go_on

    !> The time loop.
    subroutine loop(self, options, error)
        class(run_t), intent(inout) :: self
        type(options_t), intent(in) :: options
        type(error_t), intent(inout) :: error
        integer(i8) :: minor, major
        type(region_t) :: step
        real(r8) :: seconds

        step%name = 'step'
        call placement_begin(self%placement)
        call page_faults(minor, major)
        associate (simulation => self%simulation, given => self%parameters)
            do while (simulation%step - self%first_step < given%steps .and. simulation%time < given%end_time)
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

    !> Write the files that are due at this step or time.
    subroutine write_files(self, options, error)
        class(run_t), intent(inout) :: self
        type(options_t), intent(in) :: options
        type(error_t), intent(inout) :: error
        type(output_info_t) :: info
        logical :: plot, checkpoint, last

        associate (simulation => self%simulation, given => self%parameters)
            last = simulation%time >= given%end_time .or. simulation%step - self%first_step >= given%steps
            plot = due(given%plot_interval, given%plot_time, self%next_plot)
            checkpoint = due(given%checkpoint_interval, given%checkpoint_time, self%next_checkpoint)
            checkpoint = checkpoint .and. simulation%step > 0
            if (.not. (plot .or. checkpoint)) return
            call simulation%region(in_output)%begin()
            if (plot) then
                self%plots = self%plots + 1
                call self%describe(options, .false., info)
                call write_plotfile(plotfile_name(given%output, self%plots - 1), simulation%mesh, simulation%comm, info, error, &
                                    given%single_precision)
            end if
            if (checkpoint .and. .not. error%failed()) then
                self%checkpoints = self%checkpoints + 1
                call self%describe(options, .true., info)
                call write_checkpoint(checkpoint_name(given%output, self%checkpoints - 1), simulation%mesh, simulation%comm, &
                                      info, error)
                if (.not. error%failed() .and. simulation%comm%rank == 0 .and. self%checkpoints > given%checkpoint_keep) &
                    call remove_file(checkpoint_name(given%output, self%checkpoints - 1 - given%checkpoint_keep))
            end if
            call simulation%region(in_output)%end()
        end associate

    contains

        !> Whether a file is due, by steps or by time, or as the last of those; `next` is advanced.
        logical function due(interval, period, next)
            integer, intent(in) :: interval
            real(r8), intent(in) :: period
            real(r8), intent(inout) :: next

            due = .false.
            if (interval > 0) due = modulo(self%simulation%step, interval) == 0
            if (period > 0.0_r8 .and. self%simulation%time >= next) due = .true.
            do while (period > 0.0_r8 .and. self%simulation%time >= next)
                next = next + period
            end do
            if (last .and. (interval > 0 .or. period > 0.0_r8)) due = .true.
        end function due

    end subroutine write_files

    !> The contents of files except the mesh: all parameters, or (`to_go_on`) those that a continued run must also use:
    !> they were given, and do not concern only this process.
    subroutine describe(self, options, to_go_on, info)
        class(run_t), intent(in) :: self
        type(options_t), intent(in) :: options
        logical, intent(in) :: to_go_on
        type(output_info_t), intent(out) :: info
        character(:), allocatable :: value
        integer :: i

        info%time = self%simulation%time
        info%dt = self%simulation%dt
        info%step = self%simulation%step
        info%problem = self%parameters%problem
        info%species = [character(name_length) :: self%parameters%species]
        allocate (info%parameters(0))
        i = 0
        do
            i = i + 1
            if (len(options%name_of(i)) == 0) exit
            if (to_go_on) then
                if (.not. options%given(options%name_of(i))) cycle
                select case (options%name_of(i))
                case ('parameters', 'restart', 'record', 'threads', 'pages', 'steps')
                    cycle
                end select
            end if
            call options%get(options%name_of(i), value)
            if (len(value) > 0) call info%set(options%name_of(i), value)
        end do
        call info%set('plotfiles', self%plots)
        call info%set('checkpoints', self%checkpoints)
        call info%set('next plot time', self%next_plot)
        call info%set('next checkpoint time', self%next_checkpoint)
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
            call join_costs(simulation, self%populated, [self%minor, self%major], self%placement, record)
            ! Of this rank.
            call put_regions(record, 'step', error)
            call simulation%comm%agree(error)
            if (error%failed()) return
            record%traffic%bytes_stream = 8.0_r8*simulation%values_per_update()*simulation%zone_updates/max(1, size(self%seconds))
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
        ! Parameters may have changed in the middle of a continued run.
        if (len(self%parameters%restart) > 0) key = ''
        call validate_state(self%simulation, self%first_totals, self%last_totals, key, norm, validation)
    end subroutine check_state

end module ember_driver
