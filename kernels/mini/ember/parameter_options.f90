!> The options of pw-ember, with defaults, units and bounds.
module ember_parameter_options
    use helmholtz, only: table_layout_names
    use helmholtz_table_path, only: default_table
    use pw_kinds, only: i8, r8
    use pw_options, only: option_bytes, option_choice, option_count, option_flag, option_real, option_text, options_t, rules_t
    use pw_pages, only: pages_policy_names, pages_static_bytes
    implicit none
    private

    !> The variables that --refine-variables can name, by their index in a zone.
    character(4), parameter, public :: variable_name(8) = ['dens', 'momx', 'momy', 'momz', 'ener', 'pres', 'temp', 'gamc']

    character(1), parameter :: axis(3) = ['x', 'y', 'z']
    character(5), parameter :: side_name(2) = ['lower', 'upper']
    character(*), parameter :: boundaries = 'periodic|reflecting|outflow'

    public :: declare_parameters, listed, axis, side_name

contains

    !> Declare all options; `pages`: the page policy that is the default.
    subroutine declare_parameters(options, pages)
        type(options_t), intent(inout) :: options
        character(*), intent(in) :: pages

        call options%add('threads', option_count, '1', 'threads per rank', rules_t(lowest=1_i8))
        call options%add('pages', option_choice, pages, 'page policy of the blocks', values=pages_policy_names())
        call options%add('memory', option_bytes, '256MiB', 'bytes of the blocks on all ranks together', rules_t(lowest=4096_i8))
        call options%add('max-blocks', option_count, '0', 'blocks of the container of each rank; 0: as many as --memory '// &
                         'holds')
        call options%add('allocation', option_choice, 'dynamic', 'memory of the blocks: mapped, or part of a large array of '// &
                         'the program', values=trim(merge('dynamic|static', 'dynamic       ', pages_static_bytes() > 0)))
        call options%add('record', option_text, '', 'append the record of the run to this file as a JSON line')
        call declare_problem(options)
        call declare_mesh(options)
        call declare_scheme(options)
        call declare_output(options)
    end subroutine declare_parameters

    subroutine declare_problem(options)
        type(options_t), intent(inout) :: options

        call options%add('problem', option_choice, 'sedov', 'initial state: a point explosion, a shock tube, a smooth density '// &
                         'wave, a plane flame, a supernova of type Ia in 2-d', values='sedov|sod|wave|flame|snia2d')
        call options%add('sedov-energy', option_real, '1', 'energy of the whole explosion; in 2-d cartesian geometry a length', &
                         rules_t(above=0.0_r8))
        call options%add('sedov-radius', option_real, '3.5', 'radius of the ball that contains it first, in finest zones', &
                         rules_t(least=0.5_r8))
        call options%add('sedov-density', option_real, '1', 'density of the surrounding gas', rules_t(above=0.0_r8))
        call options%add('sedov-pressure', option_real, '1e-5', 'pressure of the surrounding gas', rules_t(above=0.0_r8))
        call options%add('sedov-octant', option_flag, '', 'put the explosion into the lower corner of the domain, between '// &
                         'reflecting boundaries, instead of the centre')
        call options%add('sod-direction', option_choice, 'x', 'direction of the shock tube', values='x|y|z')
        call options%add('wave-amplitude', option_real, '0.2', 'amplitude of the density, as a share of its mean', &
                         rules_t(least=0.0_r8, most=0.9_r8))
        call options%add('wave-speed', option_real, '1', 'speed of the gas in each direction, in domain lengths per time')
        call options%add('flame-speed', option_real, '', 'speed of the flame in its fuel; 0: that in carbon and oxygen, by '// &
                         'density, cm/s (default: 0.1 for flame, 0 for snia2d)', rules_t(least=0.0_r8))
        call options%add('flame-release', option_real, '', 'energy per mass of burnt fuel, erg/g (default: 0; for snia2d that '// &
                         'of carbon and oxygen of equal masses that become nickel 56)', rules_t(least=0.0_r8))
        call options%add('flame-quench', option_real, '1e7', 'density below which snia2d does not burn, g/cm^3', &
                         rules_t(least=0.0_r8))
        call options%add('star-density', option_real, '2.2e9', 'central density of the white dwarf, g/cm^3', &
                         rules_t(least=1.0e6_r8, most=2.0e10_r8))
        call options%add('star-temperature', option_real, '5e7', 'temperature of the white dwarf, K', rules_t(least=1.0e5_r8, &
                         most=1.0e9_r8))
        call options%add('ambient-density', option_real, '1e3', 'density of the gas around the star, which has no weight, g/cm^3', &
                         rules_t(least=1.0e-6_r8, most=1.0e5_r8))
        call options%add('lowest-temperature', option_real, '1e7', 'colder matter gets the energy of this temperature, K', &
                         rules_t(least=1.0e4_r8))
        call options%add('ignition-radius', option_real, '5e6', 'radius of the ball that has burnt initially; 0: no flame, cm', &
                         rules_t(least=0.0_r8))
        call options%add('ignition-offset', option_real, '8e6', 'position of its centre on the axis, cm')
        call options%add('star-level', option_count, '', 'lowest level of blocks as dense as --star-above; the flame has '// &
                         'the highest (default: one less than that)')
        call options%add('star-above', option_real, '1e5', 'g/cm^3', rules_t(above=0.0_r8))
        call options%add('eos-table', option_text, default_table(), 'table of the equation of state, from pw-eos-table')
        call options%add('table', option_choice, 'nodes', 'that table in memory: packed nodes, or separate arrays as in the '// &
                         'public routine', values=table_layout_names)
    end subroutine declare_problem

    subroutine declare_mesh(options)
        type(options_t), intent(inout) :: options
        integer :: i, side

        call options%add('dims', option_choice, '', 'dimensions of space (default: 2 for flame and snia2d, otherwise 3)', &
                         values='2|3')
        call options%add('geometry', option_choice, '', 'cylindrical: 2-d, x is the radius and y is along the axis (default: '// &
                         'cylindrical for snia2d, otherwise cartesian)', values='cartesian|cylindrical')
        call options%add('layout', option_choice, 'studies', 'studies: all variables of a zone contiguous; soa: all zones of a '// &
                         'block contiguous, variable by variable', values='studies|soa')
        call options%add('block-size', option_choice, '16', 'zones of a block in each direction; 8 and 32 need --scheme flash', &
                         values='8|16|32')
        call options%add('parents', option_choice, '', 'zones of parents of blocks: none, or data, from which blocks next to '// &
                         'finer ones copy guard cells (default: data for scheme flash, otherwise none)', values='none|data')
        call options%add('padding-variables', option_count, '0', 'variables of a zone that nothing reads; guard-cell fills '// &
                         'copy them')
        do i = 1, 3
            call options%add('roots-'//axis(i), option_count, '', 'blocks of level 0 along '//axis(i)//' (default: 1)', &
                             rules_t(lowest=1_i8))
        end do
        call options%add('fill-memory', option_flag, '', 'as many equal roots in each direction as seven eighths of --memory '// &
                         'hold at the lowest level; the rest is for refinement')
        call options%add('lowest-level', option_count, '1', 'lowest refinement level: each level halves the zones')
        call options%add('highest-level', option_count, '', 'highest refinement level (default: 5 for snia2d, otherwise 3)')
        call options%add('uniform', option_flag, '', 'no refinement: all blocks have the highest level')
        do i = 1, 3
            call options%add('lower-'//axis(i), option_real, '', 'start of the domain along '//axis(i)//' (default: 0)')
            call options%add('upper-'//axis(i), option_real, '', 'end of the domain (default: such that zones are cubes and '// &
                             'the longest side is 1)')
        end do
        do i = 1, 3
            call options%add('boundary-'//axis(i), option_choice, '', 'boundary at both ends of '//axis(i)//' (default: as the '// &
                             'problem requires)', values=boundaries)
            do side = 1, 2
                call options%add('boundary-'//axis(i)//'-'//side_name(side), option_choice, '', 'at the '//side_name(side)// &
                                 ' end only', values=boundaries)
            end do
        end do
        call options%add('refine-variables', option_text, '', 'variables that control refinement: none, or some of '// &
                         listed(',')//' and the names of species (default: dens,pres; none for snia2d, which refines '// &
                         'star and flame)')
        call options%add('refine-above', option_real, '0.8', 'refine blocks with estimates above this', rules_t(above=0.0_r8, &
                         most=1.0_r8))
        call options%add('coarsen-below', option_real, '0.2', 'coarsen blocks with estimates below this', rules_t(least=0.0_r8, &
                         most=1.0_r8))
        call options%add('refine-filter', option_real, '0.01', 'share of a variable that counts as a ripple', &
                         rules_t(least=0.0_r8, most=1.0_r8))
        call options%add('regrid-interval', option_count, '4', 'steps between adaptations of the mesh', rules_t(lowest=1_i8))
    end subroutine declare_mesh

    subroutine declare_scheme(options)
        type(options_t), intent(inout) :: options

        call options%add('scheme', option_choice, 'planes', 'planes: unsplit, streams the planes of each block once per step; '// &
                         'flash: split sweeps with parabolic reconstruction, gathers pencils variable by variable as FLASH does', &
                         values='planes|flash')
        call options%add('steps', option_count, '1000000', 'maximum number of steps')
        call options%add('end-time', option_real, '', 'end time (default: as the problem requires)', rules_t(above=0.0_r8))
        call options%add('cfl', option_real, '0.8', 'share of the longest stable step', rules_t(above=0.0_r8, most=1.0_r8))
        call options%add('first-dt-factor', option_real, '', 'share of that for the first step (default: 0.1 for sedov, '// &
                         'otherwise 1)', rules_t(above=0.0_r8, most=1.0_r8))
        call options%add('gamma', option_real, '1.4', 'adiabatic index of the gas', rules_t(above=1.0_r8))
        call options%add('weight', option_real, '1', 'mean molecular weight of the gas, g/mol', rules_t(above=0.0_r8))
        call options%add('limiter', option_choice, 'mc', 'slope limiter of scheme planes: monotonised central, or minmod, more '// &
                         'robust and more diffusive', values='mc|minmod')
        call options%add('contacts', option_choice, 'steepened', 'contact discontinuities of scheme flash', &
                         values='steepened|captured')
    end subroutine declare_scheme

    subroutine declare_output(options)
        type(options_t), intent(inout) :: options

        call options%add('errors', option_flag, '', 'compare the final state with the exact solution')
        call options%add('norms', option_text, '', 'append the norms of the final state to this file, as a row of norms.txt')
        call options%add('output', option_text, '.', 'folder of plotfiles')
        call options%add('plot-interval', option_count, '0', 'steps between plotfiles; 0: none')
        call options%add('plot-time', option_real, '0', 'time between plotfiles; 0: none', rules_t(least=0.0_r8))
        call options%add('plot-precision', option_choice, 'single', 'precision of numbers in plotfiles', values='single|double')
        call options%add('log', option_text, '', 'append totals and times of steps to this file')
        call options%add('log-interval', option_count, '1', 'steps between lines of the log', rules_t(lowest=1_i8))
    end subroutine declare_output

    !> The names of variables.
    pure function listed(separator) result(text)
        character(*), intent(in) :: separator
        character(:), allocatable :: text
        integer :: i

        text = variable_name(1)
        do i = 2, size(variable_name)
            text = text//separator//variable_name(i)
        end do
    end function listed

end module ember_parameter_options
