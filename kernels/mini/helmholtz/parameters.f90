!> The parameters of pw-helmholtz, from its command line.
module helmholtz_parameters
    use helmholtz, only: table_layout, table_layout_names
    use helmholtz_columns, only: given_energy, given_entropy, given_pressure, given_temperature, n_columns
    use helmholtz_points, only: points_plane, points_rows, points_stellar
    use helmholtz_table_path, only: default_table
    use pw_error, only: error_t, exit_usage
    use pw_kinds, only: i8
    use pw_options, only: option_bytes, option_choice, option_count, option_flag, option_text, options_t, rules_t
    use pw_pages, only: pages_policy_from_name, pages_policy_names, pages_policy_t
    use pw_record, only: configuration_t
    use pw_text, only: to_text
    implicit none
    private

    type, public :: parameters_t
        character(:), allocatable :: table, record, mode_name, points_name
        integer(i8) :: zones = 0
        integer :: row = 0                    !< zones per call
        integer :: mode = given_temperature, points = points_plane
        integer :: layout = 0                 !< of the table in memory
        logical :: few = .false., coulomb = .true., guess = .true.
        integer :: distance = 0               !< prefetch=software: distance in zones
        integer(i8) :: threads = 1, repetitions = 1
        type(pages_policy_t) :: policy
    end type parameters_t

    public :: declare_parameters, read_parameters

    character(*), parameter :: mode_names(4) = ['rt', 're', 'rp', 'rs']
    integer, parameter :: modes(4) = [given_temperature, given_energy, given_pressure, given_entropy]
    character(*), parameter :: points_names(3) = ['plane  ', 'stellar', 'rows   ']
    integer, parameter :: points(3) = [points_plane, points_stellar, points_rows]
    integer(i8), parameter :: zone_bytes = 8*n_columns
    integer(i8), parameter :: max_distance = 64   ! zones that rows.c processes together

contains

    subroutine declare_parameters(options, configuration)
        type(options_t), intent(inout) :: options
        type(configuration_t), intent(in) :: configuration

        call options%add('eos-table', option_text, default_table(), 'table of the equation of state, from pw-eos-table')
        call options%add('table', option_choice, 'nodes', 'table in memory: packed nodes, or separate arrays as in the public '// &
                         'routine', values=table_layout_names)
        call options%add('zones', option_count, '', 'zones to evaluate; default: as many as fit into --working-set', &
                         rules_t(lowest=1_i8))
        call options%add('working-set', option_bytes, '64MiB', 'bytes of the zones'' states', rules_t(lowest=zone_bytes))
        call options%add('row', option_count, '256', 'zones per call', rules_t(lowest=1_i8), '1,4,16,64,256,1024')
        call options%add('mode', option_choice, 'rt', 'given: density and temperature, energy, pressure or entropy', &
                         values='rt|re|rp|rs')
        call options%add('points', option_choice, 'plane', 'states: random over the table or over stars, or rows through a '// &
                         'star, with similar neighbours', values='plane|stellar|rows')
        call options%add('guess', option_choice, 'near', 'modes other than rt: first guesses of the temperature to 1 %, or none', &
                         values='near|none')
        call options%add('few', option_flag, 'false', 'complete only the quantities that hydrodynamics needs')
        call options%add('no-coulomb', option_flag, 'false', 'omit the Coulomb corrections')
        if (configuration%prefetch == 'software') &
            call options%add('prefetch-distance', option_count, '32', 'prefetch distance in zones', rules_t(lowest=1_i8), &
                             '4,8,16,32,64')
        call options%add('repetitions', option_count, '5', 'timed repetitions', rules_t(lowest=1_i8))
        call options%add('threads', option_count, '1', 'threads', rules_t(lowest=1_i8))
        call options%add('pages', option_choice, configuration%hugepages, 'page policy of table and zones', &
                         values=pages_policy_names())
        call options%add('record', option_text, '', 'append the record of the measurement to this file as a JSON line')
    end subroutine declare_parameters

    !> Exit code 2 for invalid values.
    subroutine read_parameters(options, configuration, parameters, error)
        type(options_t), intent(inout) :: options
        type(configuration_t), intent(in) :: configuration
        type(parameters_t), intent(out) :: parameters
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word
        integer(i8) :: bytes, number
        logical :: without

        if (.not. options%given('zones')) then
            call options%get('working-set', bytes)
            call options%set_default('zones', to_text(bytes/zone_bytes), error)
        end if
        call options%get('zones', parameters%zones)
        call options%get('record', parameters%record)
        call options%get('eos-table', parameters%table)
        if (len(parameters%table) == 0) then
            call error%raise(exit_usage, 'the table of the equation of state is missing', 'helmholtz_parameters', &
                             'create one with pw-eos-table, and set --eos-table')
            return
        end if
        if (parameters%zones > 2_i8**50) then
            call error%raise(exit_usage, '--zones exceeds any memory', 'helmholtz_parameters', 'choose fewer --zones')
            return
        end if
        call options%get('table', word)
        parameters%layout = table_layout(word)
        call options%get('row', number)
        parameters%row = int(min(number, parameters%zones, 2_i8**20))
        call options%get('mode', parameters%mode_name)
        parameters%mode = modes(findloc(mode_names == parameters%mode_name, .true., dim=1))
        call options%get('points', parameters%points_name)
        parameters%points = points(findloc(points_names == parameters%points_name, .true., dim=1))
        call options%get('guess', word)
        parameters%guess = word == 'near'
        call options%get('few', parameters%few)
        call options%get('no-coulomb', without)
        parameters%coulomb = .not. without
        if (configuration%prefetch == 'software') then
            call options%get('prefetch-distance', number)
            if (number > max_distance) then
                call error%raise(exit_usage, '--prefetch-distance is at most '//to_text(max_distance)//' zones', &
                                 'helmholtz_parameters', 'choose a smaller --prefetch-distance')
                return
            end if
            parameters%distance = int(number)
        end if
        call options%get('repetitions', parameters%repetitions)
        call options%get('threads', parameters%threads)
        call options%get('pages', word)
        call pages_policy_from_name(word, parameters%policy, error)
    end subroutine read_parameters

end module helmholtz_parameters
