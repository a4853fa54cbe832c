!> The values of the options of a run: defaults of its problem, contradictions, and all of them as parameters_t.
module ember_parameter_values
    use ember_mesh, only: block_zones, cartesian, cylindrical, first_species, outflow, periodic, reflecting, v_dens, v_ener, &
        v_gamc, v_momx, v_momy, v_momz, v_pres, v_temp
    use ember_parameter_defaults, only: count_of, count_of_choice, dims_of, fuel_and_ash, is_split, note, &
        problem_defaults
    use ember_parameters, only: parameters_t
    use ember_parameter_options, only: axis, listed, side_name, variable_name
    use ember_ppm, only: sweep_guards
    use helmholtz, only: table_layout
    use pw_error, only: error_t, exit_usage
    use pw_kinds, only: i8, r8
    use pw_options, only: options_t
    use pw_pages, only: pages_policy_from_name
    use pw_text, only: to_text
    implicit none
    private

    integer, parameter :: variable_index(8) = [v_dens, v_momx, v_momy, v_momz, v_ener, v_pres, v_temp, v_gamc]

    public :: read_parameters

contains

    !> Fill in the problem's defaults, check, and store all in `parameters`.
    !> Errors: exit_usage, with all contradictions, one per line; those of pages_policy_from_name.
    subroutine read_parameters(options, parameters, error)
        type(options_t), intent(inout) :: options
        type(parameters_t), intent(out) :: parameters
        type(error_t), intent(inout) :: error
        character(:), allocatable :: faults

        faults = ''
        call problem_defaults(options, faults, error)
        if (error%failed()) return
        call keep_run(options, parameters, faults, error)
        if (error%failed()) return
        call keep_mesh(options, parameters, faults)
        call keep_problem(options, parameters, faults)
        if (len(faults) > 0) call error%raise(exit_usage, 'the parameters contradict each other:'//faults, 'ember_parameters', &
                                              'pw-ember --help lists all parameters')
    end subroutine read_parameters

    !> Independent parameters.
    subroutine keep_run(options, parameters, faults, error)
        type(options_t), intent(in) :: options
        type(parameters_t), intent(inout) :: parameters
        character(:), allocatable, intent(inout) :: faults
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word

        call options%get('problem', parameters%problem)
        allocate (parameters%species(0))
        if (parameters%problem == 'flame' .or. parameters%problem == 'snia2d') parameters%species = fuel_and_ash
        parameters%n_species = size(parameters%species)
        call options%get('memory', parameters%memory)
        parameters%max_blocks = count_of(options, 'max-blocks')
        if (parameters%max_blocks > 0) then
            if (options%given('memory')) call note(faults, 'max-blocks and memory both set the size of the container: set '// &
                                                   'only one of them')
            if (options%given('fill-memory')) call note(faults, 'fill-memory chooses the roots by memory: remove max-blocks')
        end if
        call options%get('allocation', word)
        parameters%static = word == 'static'
        call options%get('parents', word)
        parameters%parents = word == 'data'
        parameters%padding = count_of(options, 'padding-variables')
        parameters%threads = count_of(options, 'threads')
        call options%get('pages', word)
        call pages_policy_from_name(word, parameters%policy, error)
        parameters%steps = count_of(options, 'steps')
        call options%get('end-time', parameters%end_time)
        call options%get('cfl', parameters%cfl)
        call options%get('first-dt-factor', parameters%first_step)
        call options%get('gamma', parameters%gamma)
        call options%get('weight', parameters%weight)
        call options%get('limiter', word)
        parameters%steepness = merge(1.0_r8, 2.0_r8, word == 'minmod')
        parameters%split = is_split(options)
        parameters%block_size = count_of_choice(options, 'block-size')
        if (parameters%split) then
            parameters%guards = sweep_guards
        else if (parameters%block_size /= block_zones) then
            call note(faults, 'block-size '//to_text(parameters%block_size)//' needs scheme flash')
        end if
        call options%get('contacts', word)
        parameters%steep = word == 'steepened'

        call options%get('errors', parameters%errors)
        call options%get('record', parameters%record)
        call options%get('norms', parameters%norms)
        call options%get('log', parameters%log)
        parameters%log_interval = count_of(options, 'log-interval')
        call options%get('output', word)
        parameters%output = word//'/'//parameters%problem
        parameters%plot_interval = count_of(options, 'plot-interval')
        call options%get('plot-time', parameters%plot_time)
        call options%get('plot-precision', word)
        parameters%single_precision = word == 'single'
    end subroutine keep_run

    !> Space and its refinement.
    subroutine keep_mesh(options, parameters, faults)
        type(options_t), intent(in) :: options
        type(parameters_t), intent(inout) :: parameters
        character(:), allocatable, intent(inout) :: faults
        character(:), allocatable :: word, name
        integer :: i, side

        parameters%dims = dims_of(options)
        parameters%boundary = outflow
        call options%get('geometry', word)
        parameters%geometry = merge(cylindrical, cartesian, word == 'cylindrical')
        call options%get('layout', word)
        parameters%variable_last = word == 'soa'
        parameters%lowest_level = count_of(options, 'lowest-level')
        parameters%highest_level = count_of(options, 'highest-level')
        if (parameters%lowest_level > parameters%highest_level) call note(faults, 'lowest-level '// &
            to_text(parameters%lowest_level)//' is above highest-level '//to_text(parameters%highest_level))
        if (parameters%geometry == cylindrical .and. parameters%dims == 3) &
            call note(faults, 'geometry cylindrical needs dims 2')

        do i = 1, 3
            if (i > parameters%dims) then
                call refuse_third(options, faults)
                cycle
            end if
            parameters%roots(i) = count_of(options, 'roots-'//axis(i))
            call options%get('lower-'//axis(i), parameters%lower(i))
            call options%get('upper-'//axis(i), parameters%upper(i))
            if (.not. parameters%lower(i) < parameters%upper(i)) &
                call note(faults, 'lower-'//axis(i)//' is not below upper-'//axis(i))
            do side = 1, 2
                name = 'boundary-'//axis(i)//'-'//side_name(side)
                call options%get(name, word)
                parameters%boundary(side, i) = periodic
                if (word == 'reflecting') parameters%boundary(side, i) = reflecting
                if (word == 'outflow') parameters%boundary(side, i) = outflow
            end do
            if (count(parameters%boundary(:, i) == periodic) == 1) &
                call note(faults, 'boundary-'//axis(i)//' is periodic at only one end')
        end do
        if (parameters%geometry == cylindrical) then
            if (abs(parameters%lower(1)) > 0.0_r8) call note(faults, 'geometry cylindrical needs lower-x 0, the axis')
            if (parameters%boundary(1, 1) /= reflecting) &
                call note(faults, 'geometry cylindrical needs boundary-x-lower reflecting, at the axis')
        end if
        call keep_refinement(options, parameters, faults)
    end subroutine keep_mesh

    !> In 2-d parameters of z are not allowed.
    subroutine refuse_third(options, faults)
        type(options_t), intent(in) :: options
        character(:), allocatable, intent(inout) :: faults
        character(*), parameter :: name(6) = [character(16) :: 'roots-z', 'lower-z', 'upper-z', 'boundary-z', &
                                              'boundary-z-lower', 'boundary-z-upper']
        integer :: i

        do i = 1, size(name)
            if (options%given(trim(name(i)))) call note(faults, trim(name(i))//' has no effect with dims 2')
        end do
    end subroutine refuse_third

    subroutine keep_refinement(options, parameters, faults)
        type(options_t), intent(in) :: options
        type(parameters_t), intent(inout) :: parameters
        character(:), allocatable, intent(inout) :: faults
        character(:), allocatable :: list, word
        integer :: comma, i
        logical :: known

        allocate (parameters%refine_variables(0))
        call options%get('refine-variables', list)
        list = list//','
        do while (len(list) > 0)
            comma = index(list, ',')
            word = trim(adjustl(list(:comma - 1)))
            list = list(comma + 1:)
            known = word == 'none'
            do i = 1, parameters%n_species
                if (word /= parameters%species(i)) cycle
                known = .true.
                parameters%refine_variables = [parameters%refine_variables, first_species + i - 1]
            end do
            do i = 1, size(variable_name)
                if (word /= variable_name(i)) cycle
                known = .true.
                if (all(parameters%refine_variables /= variable_index(i))) &
                    parameters%refine_variables = [parameters%refine_variables, variable_index(i)]
            end do
            if (.not. known) call note(faults, "refine-variables takes some of "//listed(',')//", not '"//word//"'")
        end do
        parameters%star_level = count_of(options, 'star-level')
        if (parameters%problem == 'snia2d') parameters%star_level = max(parameters%star_level, parameters%lowest_level)
        if (parameters%problem == 'snia2d' .and. parameters%star_level > parameters%highest_level) &
            call note(faults, 'star-level '//to_text(parameters%star_level)//' is above highest-level '// &
                      to_text(parameters%highest_level))
        call options%get('star-above', parameters%star_above)
        call options%get('refine-above', parameters%refine_above)
        call options%get('coarsen-below', parameters%coarsen_below)
        call options%get('refine-filter', parameters%refine_filter)
        if (.not. parameters%coarsen_below < parameters%refine_above) call note(faults, 'coarsen-below is not below refine-above')
        parameters%regrid_interval = count_of(options, 'regrid-interval')
    end subroutine keep_refinement

    subroutine keep_problem(options, parameters, faults)
        type(options_t), intent(in) :: options
        type(parameters_t), intent(inout) :: parameters
        character(:), allocatable, intent(inout) :: faults
        character(:), allocatable :: word

        call options%get('sedov-energy', parameters%sedov_energy)
        call options%get('sedov-radius', parameters%sedov_radius)
        call options%get('sedov-density', parameters%sedov_density)
        call options%get('sedov-pressure', parameters%sedov_pressure)
        call options%get('sedov-octant', parameters%octant)
        call options%get('sod-direction', word)
        parameters%sod_direction = index('xyz', word)
        call options%get('wave-amplitude', parameters%wave_amplitude)
        call options%get('wave-speed', parameters%wave_speed)
        call options%get('flame-speed', parameters%flame_speed)
        call options%get('flame-release', parameters%flame_release)
        call options%get('flame-quench', parameters%flame_quench)
        call options%get('star-density', parameters%star_density)
        call options%get('star-temperature', parameters%star_temperature)
        call options%get('ambient-density', parameters%ambient_density)
        call options%get('lowest-temperature', parameters%lowest_temperature)
        call options%get('ignition-radius', parameters%ignition_radius)
        call options%get('ignition-offset', parameters%ignition_offset)
        call options%get('eos-table', parameters%eos_table)
        call options%get('table', word)
        parameters%table_layout = table_layout(word)
        associate (given => parameters, dims => parameters%dims)
            if (given%split .and. given%n_species > 0) &
                call note(faults, 'problem '//given%problem//' needs scheme planes: scheme flash has no species and no gravity')
            if (given%split .and. options%given('limiter')) call note(faults, 'limiter has no effect with scheme flash')
            if (.not. given%split .and. options%given('contacts')) call note(faults, 'contacts has no effect with scheme planes')
            if (given%errors .and. any(given%problem == [character(6) :: 'flame', 'snia2d'])) &
                call note(faults, 'problem '//given%problem//' has no exact solution: remove errors')
            select case (given%problem)
            case ('sedov')
                if (given%octant .and. any(given%boundary(1, :dims) /= reflecting)) &
                    call note(faults, 'sedov-octant needs reflecting lower boundaries')
            case ('sod')
                if (given%sod_direction > dims) call note(faults, 'sod-direction z needs dims 3')
                if (given%geometry == cylindrical .and. given%sod_direction == 1) &
                    call note(faults, 'geometry cylindrical needs sod-direction y, along the axis')
            case ('wave')
                if (given%geometry == cylindrical) call note(faults, 'problem wave needs geometry cartesian')
                if (any(given%boundary(:, :dims) /= periodic)) call note(faults, 'problem wave needs periodic boundaries')
            case ('flame')
                if (given%geometry == cylindrical) call note(faults, 'problem flame needs geometry cartesian')
                ! For a gas with pressure and density 1.
                if (.not. (given%flame_speed > 0.0_r8 .and. given%flame_speed < sqrt(given%gamma))) &
                    call note(faults, 'problem flame needs a flame-speed above 0 and below the speed of sound')
            case ('snia2d')
                if (given%geometry /= cylindrical) call note(faults, 'problem snia2d needs geometry cylindrical')
                if (given%lowest_temperature > given%star_temperature) &
                    call note(faults, 'lowest-temperature is above star-temperature')
                if (given%ignition_radius > 0.0_r8 .and. abs(given%ignition_offset) + given%ignition_radius > 1.5e8_r8) &
                    call note(faults, 'the ball of ignition-radius at ignition-offset extends beyond the star')
            end select
        end associate
    end subroutine keep_problem

end module ember_parameter_values
