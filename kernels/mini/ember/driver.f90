!> A run of ember from its parameters to its record: time loop, output, log, validation, summary.
module ember_driver
    use, intrinsic :: iso_fortran_env, only: output_unit
    use ember_container, only: container_create
    use ember_eos, only: gamma_law_t
    use ember_helmholtz_eos, only: helmholtz_eos_t
    use ember_hydro_work, only: ledger_t
    use ember_log, only: log_t
    use ember_mesh, only: cylindrical, first_species, mesh_t
    use ember_norms, only: norms_of
    use ember_nuclei, only: charge, mass_number
    use ember_output, only: checkpoint_name, name_length, output_info_t, plotfile_name, read_checkpoint, &
        read_checkpoint_head, write_checkpoint, write_plotfile
    use ember_parallel, only: comm_t
    use ember_parameters, only: parameters_t
    use ember_problems, only: new_problem, sedov_problem_t
    use ember_reference, only: norms_row, state_key
    use ember_simulation, only: in_eos, in_gravity, in_guards, in_hydro, in_output, in_regrid, simulation_t
    use ember_solution_errors, only: blast_radius, density_error
    use ember_validation, only: validate_state
    use pw_error, only: error_t, exit_check
    use pw_evidence, only: outcome, populate, populated_t, put_regions
    use pw_kinds, only: i8, r8
    use pw_options, only: options_t
    use pw_pages, only: pages_begin, pages_observe, pages_verify, pages_policy_t
    use pw_record, only: array_record_t, configuration_t, metric_t, placement_t, record_t, validation_t
    use pw_record_json, only: record_to_json
    use pw_region, only: region_t, regions_reset
    use pw_system, only: append_line, page_faults, utc_now
    use pw_text, only: bytes_to_text, to_text
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
        procedure, private :: set_up, set_up_physics, go_on, write_files, write_log, describe, check_state, metrics
    end type run_t

    !> Not measured: the bytes of the zones that the scheme reads and writes, over the time.
    character(*), parameter :: estimated = 'bandwidth_stream_gb_per_s'

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
        self%first_totals = self%simulation%totals()
        self%simulation%ledger = ledger_t()
        self%first_density = self%simulation%largest_density()
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
            if (.not. error%failed()) call container_create(mesh, given%memory/mesh%n_ranks, policy, error)
            call simulation%comm%agree(error)
            if (error%failed()) return
            call populate([mesh%memory], .true., self%populated)
            call pages_verify([mesh%memory], policy, error)
            call simulation%comm%agree(error)
            if (error%failed()) return

            call self%set_up_physics(policy, error)
            if (error%failed()) return
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

    !> Equation of state, problem, and its physics in addition to hydrodynamics.
    subroutine set_up_physics(self, policy, error)
        class(run_t), intent(inout) :: self
        type(pages_policy_t), intent(in) :: policy
        type(error_t), intent(inout) :: error
        type(helmholtz_eos_t), allocatable :: degenerate

        associate (given => self%parameters, simulation => self%simulation)
            if (given%problem == 'snia2d') then
                allocate (degenerate)
                call degenerate%start(given%eos_table, policy, mass_number, charge, given%lowest_temperature, error)
                call move_alloc(degenerate, simulation%eos)
            else
                simulation%eos = gamma_law_t(gamma=given%gamma, weight=given%weight)
            end if
            if (.not. error%failed()) call new_problem(given, simulation%problem, error, simulation%eos)
            call simulation%comm%agree(error)
            if (error%failed()) return
            call simulation%problem%equip(simulation%mesh, simulation%gravity, simulation%flame)
            if (simulation%gravity%on) then
                simulation%refinement%dense_level = given%star_level
                simulation%refinement%dense = given%star_above
            end if
            if (simulation%flame%on) then
                simulation%refinement%front = first_species + simulation%flame%ash - 1
                simulation%refinement%front_dense = given%flame_quench
                if (given%problem == 'flame') simulation%refinement%front_dense = 0.0_r8
            end if
        end associate
    end subroutine set_up_physics

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
        self%last_totals = self%simulation%totals()
    end subroutine loop

    !> Write a row of the log if one is due.
    subroutine write_log(self, error)
        class(run_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        real(r8), allocatable :: totals(:)
        type(ledger_t) :: ledger
        real(r8) :: densest

        associate (simulation => self%simulation, given => self%parameters)
            if (len(given%log) == 0 .or. modulo(simulation%step, given%log_interval) /= 0) return
            totals = simulation%totals()
            densest = 0.0_r8
            if (.not. simulation%is_plain()) then
                densest = simulation%largest_density()
                ledger = simulation%whole_ledger()
                ! At the present time, because it was half a step ahead of the previous step.
                if (simulation%gravity%on) call simulation%gravity%measure(simulation%mesh, simulation%comm, 0.0_r8)
            end if
            if (simulation%comm%rank == 0) &
                call self%log%write(simulation, totals, self%seconds(size(self%seconds)), densest, ledger, error)
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

    !> Remove a file if it exists.
    subroutine remove_file(path)
        character(*), intent(in) :: path
        integer :: unit, status

        open (newunit=unit, file=path, status='old', iostat=status)
        if (status == 0) close (unit, status='delete', iostat=status)
    end subroutine remove_file

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
            record%working_set = total(mesh%memory%bytes)
            record%populate_seconds = self%populated%seconds
            call simulation%comm%all_max(record%populate_seconds)
            record%populate_minor = total(self%populated%minor)
            record%populate_major = total(self%populated%major)
            record%compute_minor = total(self%minor)
            record%compute_major = total(self%major)
            associate (mine => self%placement, all => record%placement)
                call simulation%comm%all_gather(mine%cpus, all%cpus)
                call simulation%comm%all_gather(mine%numa_nodes, all%numa_nodes)
                call simulation%comm%all_gather(mine%cpus_at_end, all%cpus_at_end)
                call simulation%comm%all_gather(mine%numa_nodes_at_end, all%numa_nodes_at_end)
                call simulation%comm%all_gather(mine%migrated, all%migrated)
            end associate
            ! Of this rank.
            call put_regions(record, 'step', error)
            call simulation%comm%agree(error)
            if (error%failed()) return
            ! The scheme reads and writes each zone once per step.
            record%traffic%bytes_stream = 2*real(record%element_bytes, r8)*simulation%zone_updates/max(1, size(self%seconds))
            record%traffic%bytes_hardware = record%traffic%bytes_stream
            call prove_memory()
            if (.not. error%failed()) call join_proofs()
            call simulation%comm%agree(error)
            if (error%failed()) return
            call self%check_state(options, record%validation, error)
            call simulation%comm%agree(error)
            if (error%failed()) return
            record%metrics = self%metrics()
            if (simulation%comm%rank == 0) then
                if (len(self%parameters%record) > 0) &
                    call append_line(self%parameters%record, record_to_json(record, options), error)
                call print_summary(self, record)
            end if
            call simulation%comm%agree(error)
        end associate
        if (.not. record%validation%passed .and. .not. error%failed()) &
            call error%raise(exit_check, 'the result failed its check: '//record%validation%method, 'ember_driver', &
                             'do not use this configuration; try another compiler version')

    contains

        !> The sum over ranks.
        integer(i8) function total(mine)
            integer(i8), intent(in) :: mine
            integer(i8), allocatable :: all(:)

            call self%simulation%comm%all_gather([mine], all)
            total = sum(all)
        end function total

        !> Record the pages of the blocks and, if used, of the equation of state's table.
        subroutine prove_memory()
            associate (blocks => self%simulation%mesh%memory)
                select type (eos => self%simulation%eos)
                type is (helmholtz_eos_t)
                    call pages_observe([blocks, eos%table%memory], blocks%policy, record%pages, error)
                class default
                    call pages_observe([blocks], blocks%policy, record%pages, error)
                end select
            end associate
        end subroutine prove_memory

        !> Combine the observed pages of all ranks: the arrays of each rank.
        subroutine join_proofs()
            integer(i8), allocatable :: bytes(:), huge_bytes(:), page_size(:)
            type(array_record_t), allocatable :: mine(:)
            integer :: i, n

            associate (comm => self%simulation%comm, pages => record%pages)
                n = size(pages%arrays)
                call comm%all_gather(pages%arrays%bytes, bytes)
                call comm%all_gather(pages%arrays%huge_bytes, huge_bytes)
                call comm%all_gather(pages%arrays%page_size_observed, page_size)
                pages%page_size_observed = minval(page_size)
                pages%huge_coverage = real(sum(huge_bytes), r8)/real(sum(bytes), r8)
                if (size(bytes) == n) return
                call move_alloc(pages%arrays, mine)
                allocate (pages%arrays(size(bytes)))
                do i = 1, size(bytes)
                    pages%arrays(i) = array_record_t(mine(1 + modulo(i - 1, n))%name//'.'//to_text((i - 1)/n), bytes(i), &
                                                     huge_bytes(i), page_size(i))
                end do
            end associate
        end subroutine join_proofs

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

    !> The figures of the run, the headline first.
    function metrics(self) result(figures)
        class(run_t), intent(inout) :: self
        type(metric_t), allocatable :: figures(:)
        real(r8) :: seconds, updates, exact, round
        type(ledger_t) :: ledger

        associate (simulation => self%simulation, region => self%simulation%region)
            seconds = sum(self%seconds)
            updates = real(simulation%zone_updates, r8)
            figures = [metric_t('zone_updates_per_s', ratio(updates, seconds)), &
                       metric_t('hydro_zone_updates_per_s', ratio(updates, region(in_hydro)%seconds)), &
                       metric_t(estimated, ratio(16.0e-9_r8*simulation%mesh%n_variables*updates, seconds)), &
                       metric_t('guard_share', ratio(region(in_guards)%seconds, seconds)), &
                       metric_t('regrid_share', ratio(region(in_regrid)%seconds, seconds)), &
                       metric_t('eos_share', ratio(simulation%eos_seconds(), seconds)), &
                       metric_t('output_seconds', region(in_output)%seconds), &
                       metric_t('blocks', real(simulation%mesh%tree%n_leaves, r8)), &
                       metric_t('steps', real(simulation%step, r8)), &
                       metric_t('time', simulation%time), &
                       metric_t('memory_ratio', peak_memory()/real(simulation%mesh%memory%bytes, r8))]
            if (.not. simulation%is_plain()) then
                round = merge(2.0_r8*acos(-1.0_r8), 1.0_r8, simulation%mesh%geometry == cylindrical)
                ledger = simulation%whole_ledger()
                figures = [figures, metric_t('eos_seconds', region(in_eos)%seconds), &
                           metric_t('hydro_seconds', region(in_hydro)%seconds), &
                           metric_t('gravity_seconds', region(in_gravity)%seconds), &
                           metric_t('eos_evaluations_per_s', ratio(real(simulation%eos_evaluations, r8), &
                                                                   region(in_eos)%seconds)), &
                           metric_t('largest_density', simulation%largest_density()), &
                           metric_t('density_drift', ratio(simulation%largest_density(), self%first_density) - 1.0_r8), &
                           metric_t('burnt_mass', round*ledger%burnt), &
                           metric_t('released_energy', round*simulation%flame%release*ledger%burnt), &
                           metric_t('raised_energy', round*ledger%raised)]
            end if
            if (.not. self%parameters%errors) return
            figures = [figures, metric_t('density_error_l1', density_error(simulation))]
            select type (problem => simulation%problem)
            type is (sedov_problem_t)
                exact = problem%blast%shock_radius(simulation%time)
                figures = [figures, metric_t('shock_radius', blast_radius(simulation, problem)), &
                           metric_t('shock_radius_exact', exact)]
            end select
        end associate
    end function metrics

    pure real(r8) function ratio(a, b)
        real(r8), intent(in) :: a, b

        ratio = 0.0_r8
        if (b > 0.0_r8) ratio = a/b
    end function ratio

    !> The peak memory of this process, including its present hugetlbfs pages [B]; from /proc.
    real(r8) function peak_memory()
        character(256) :: line
        integer(i8) :: kib
        integer :: unit, status

        peak_memory = 0.0_r8
        open (newunit=unit, file='/proc/self/status', action='read', iostat=status)
        if (status /= 0) return
        do
            read (unit, '(a)', iostat=status) line
            if (status /= 0) exit
            if (index(line, 'VmHWM:') /= 1 .and. index(line, 'HugetlbPages:') /= 1) cycle
            read (line(index(line, ':') + 1:index(line, 'kB') - 1), *, iostat=status) kib
            if (status == 0) peak_memory = peak_memory + 1024.0_r8*kib
        end do
        close (unit)
    end function peak_memory

    !> Print the run.
    subroutine print_summary(self, record)
        type(run_t), intent(in) :: self
        type(record_t), intent(in) :: record
        integer :: i

        associate (c => record%configuration, mesh => self%simulation%mesh, p => self%parameters)
            write (output_unit, '(a)') 'ember  '//p%problem//'  '//c%compiler//'  prefetch '//c%prefetch, &
                '  mesh          '//to_text(mesh%dims)//'-d, '//to_text(mesh%tree%n_leaves)//' blocks of levels '// &
                to_text(minval(mesh%tree%level(:mesh%tree%n_leaves)))//' to '// &
                to_text(maxval(mesh%tree%level(:mesh%tree%n_leaves)))//', '//to_text(record%elements)//' zones of '// &
                to_text(mesh%n_variables)//' variables; '//bytes_to_text(record%working_set)//' of blocks', &
                '  ranks         '//to_text(mesh%n_ranks)//' of '//to_text(p%threads)//' thread(s)', &
                '  pages         '//record%pages%policy//': '//bytes_to_text(record%pages%page_size_observed)// &
                ' observed, '//to_text(100.0_r8*record%pages%huge_coverage, 'f0.1')//' % huge; first touch '// &
                to_text(1.0e3_r8*record%populate_seconds, 'f0.2')//' ms', &
                '  steps         '//to_text(size(self%seconds))//' in '//to_text(sum(self%seconds), 'f0.3')//' s, to time '// &
                to_text(self%simulation%time, 'g0.6')
        end associate
        do i = 1, size(record%metrics)
            write (output_unit, '(a)') '  '//record%metrics(i)%field//'  '//to_text(record%metrics(i)%value, 'g0.6')// &
                trim(merge(' (estimated)', '            ', record%metrics(i)%field == estimated))
        end do
        write (output_unit, '(a)') '  check         '//outcome(record%validation)//': '//record%validation%method
    end subroutine print_summary

end module ember_driver
