!> The figures of a run, and its summary on the terminal.
module ember_figures
    use, intrinsic :: iso_fortran_env, only: output_unit
    use ember_domain, only: largest_density
    use ember_hydro_work, only: ledger_t
    use ember_mesh, only: cylindrical
    use ember_parameters, only: parameters_t
    use ember_problem, only: known_problem_t
    use ember_problems, only: sedov_problem_t
    use ember_scheme, only: in_eos, in_gravity, in_guards, in_hydro, in_output, in_regrid
    use ember_simulation, only: simulation_t
    use ember_solution_errors, only: blast_radius, density_error
    use pw_evidence, only: outcome
    use pw_kinds, only: i8, r8
    use pw_record, only: metric_t, record_t
    use pw_text, only: bytes_to_text, to_text
    implicit none
    private

    !> Not measured: the bytes of the zones that the scheme reads and writes, over the time.
    character(*), parameter :: estimated = 'bandwidth_stream_gb_per_s'

    public :: figures_of, print_summary

contains

    !> The figures of the run, the headline first.
    function figures_of(simulation, seconds_of_steps, first_density, with_errors) result(figures)
        type(simulation_t), intent(in) :: simulation
        real(r8), intent(in) :: seconds_of_steps(:), first_density
        logical, intent(in) :: with_errors
        type(metric_t), allocatable :: figures(:)
        real(r8) :: seconds, updates, exact, round, densest
        type(ledger_t) :: ledger

        associate (region => simulation%region)
            seconds = sum(seconds_of_steps)
            updates = real(simulation%zone_updates, r8)
            figures = [metric_t('zone_updates_per_s', ratio(updates, seconds)), &
                       metric_t('hydro_zone_updates_per_s', ratio(updates, region(in_hydro)%seconds)), &
                       metric_t(estimated, ratio(8.0e-9_r8*updates*simulation%scheme%values_per_update(simulation%mesh), &
                                                 seconds)), &
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
                densest = largest_density(simulation%mesh, simulation%comm)
                figures = [figures, metric_t('eos_seconds', region(in_eos)%seconds), &
                           metric_t('hydro_seconds', region(in_hydro)%seconds), &
                           metric_t('gravity_seconds', region(in_gravity)%seconds), &
                           metric_t('eos_evaluations_per_s', ratio(real(simulation%eos_evaluations, r8), &
                                                                   region(in_eos)%seconds)), &
                           metric_t('largest_density', densest), &
                           metric_t('density_drift', ratio(densest, first_density) - 1.0_r8), &
                           metric_t('burnt_mass', round*ledger%burnt), &
                           metric_t('released_energy', round*simulation%flame%release*ledger%burnt), &
                           metric_t('raised_energy', round*ledger%raised)]
            end if
            if (.not. with_errors) return
            select type (problem => simulation%problem)
            class is (known_problem_t)
                figures = [figures, metric_t('density_error_l1', density_error(simulation, problem))]
            type is (sedov_problem_t)
                exact = problem%shock_radius(simulation%time)
                figures = [figures, metric_t('shock_radius', blast_radius(simulation, problem)), &
                           metric_t('shock_radius_exact', exact)]
            end select
        end associate
    end function figures_of

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
    subroutine print_summary(simulation, p, seconds, record)
        type(simulation_t), intent(in) :: simulation
        type(parameters_t), intent(in) :: p
        real(r8), intent(in) :: seconds(:)   ! of each step
        type(record_t), intent(in) :: record
        integer :: i

        associate (c => record%configuration, mesh => simulation%mesh)
            write (output_unit, '(a)') 'ember  '//p%problem//'  '//c%compiler//'  prefetch '//c%prefetch, &
                '  mesh          '//to_text(mesh%dims)//'-d, '//to_text(mesh%tree%n_leaves)//' blocks of levels '// &
                to_text(minval(mesh%tree%level(:mesh%tree%n_leaves)))//' to '// &
                to_text(maxval(mesh%tree%level(:mesh%tree%n_leaves)))//', '//to_text(record%elements)//' zones of '// &
                to_text(mesh%n_variables)//' variables; '//bytes_to_text(record%working_set)//' of blocks', &
                '  ranks         '//to_text(mesh%n_ranks)//' of '//to_text(p%threads)//' thread(s)', &
                '  pages         '//record%pages%policy//': '//bytes_to_text(record%pages%page_size_observed)// &
                ' observed, '//to_text(100.0_r8*record%pages%huge_coverage, 'f0.1')//' % huge; first touch '// &
                to_text(1.0e3_r8*record%first_touch_seconds, 'f0.2')//' ms', &
                '  steps         '//to_text(size(seconds))//' in '//to_text(sum(seconds), 'f0.3')//' s, to time '// &
                to_text(simulation%time, 'g0.6')
        end associate
        do i = 1, size(record%metrics)
            write (output_unit, '(a)') '  '//record%metrics(i)%field//'  '//to_text(record%metrics(i)%value, 'g0.6')// &
                trim(merge(' (estimated)', '            ', record%metrics(i)%field == estimated))
        end do
        write (output_unit, '(a)') '  check         '//outcome(record%validation)//': '//record%validation%method
    end subroutine print_summary

end module ember_figures
