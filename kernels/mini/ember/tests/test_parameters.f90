!> Parameters: defaults of each problem, and that all contradictions are reported at once.
program test_parameters
    use ember_container, only: block_bytes
    use ember_mesh, only: cylindrical, first_species, mesh_t, outflow, periodic, reflecting, v_dens, v_ener
    use ember_parameter_options, only: declare_parameters
    use ember_parameter_values, only: read_parameters
    use ember_parameters, only: parameters_t
    use pw_error, only: error_t, exit_usage
    use pw_kinds, only: r8
    use pw_options, only: options_t
    implicit none
    type(options_t) :: options
    type(parameters_t) :: given
    type(error_t) :: error
    integer :: failures = 0

    call by_problem()
    call contradictions()
    if (failures > 0) error stop 'test_parameters: failures'

contains

    subroutine by_problem()
        type(mesh_t) :: mesh

        call read('problem=wave roots-x=4 roots-y=2')
        call expect('the wave goes round', all(given%boundary == periodic))
        call expect('zones are cubes', agrees(given%upper, [1.0_r8, 0.5_r8, 0.25_r8]))
        call read('problem=sod sod-direction=y end-time=0.1 boundary-x=reflecting boundary-y-upper=reflecting layout=soa')
        call expect('its ends', all(given%boundary(:, 1) == reflecting) .and. given%boundary(1, 2) == outflow .and. &
                    given%boundary(2, 2) == reflecting)
        call read('dims=2 geometry=cylindrical sedov-octant=true roots-y=2 refine-variables=ener,dens,ener')
        call expect('cylinder', .not. error%failed() .and. given%geometry == cylindrical .and. given%roots(3) == 1)
        call expect('octant', all(given%boundary(1, :2) == reflecting) .and. all(given%boundary(2, :2) == outflow))
        call expect('third direction', agrees(given%upper, [0.5_r8, 1.0_r8, 1.0_r8]))
        call expect('variables', size(given%refine_variables) == 2)
        call expect('their indices', all(given%refine_variables == [v_ener, v_dens]))
        call read('fill-memory=true memory=512MiB lowest-level=1')
        call expect('roots that fill the memory', all(given%roots == 4))
        call read('problem=snia2d')
        call expect('the star', .not. error%failed() .and. given%dims == 2 .and. given%geometry == cylindrical .and. &
                    all(given%roots == [1, 2, 1]) .and. given%highest_level == 5 .and. given%star_level == 4 .and. &
                    all(given%boundary(:, 1) == [reflecting, outflow]) .and. given%n_species == 2)
        call expect('nothing by its ripples', size(given%refine_variables) == 0)
        call read('problem=snia2d fill-memory=true memory=1GiB lowest-level=0 highest-level=1')
        call expect('twice as high as wide', given%roots(2) == 2*given%roots(1) .and. given%roots(1) == 121)
        call read('problem=flame max-blocks=3 padding-variables=2')
        call given%set_up_mesh(mesh)
        mesh%n_ranks = 2
        call expect('blocks of a rank', mesh%n_used() == 10 .and. mesh%n_variables == 12 .and. &
                    given%container_bytes(mesh) == 3*block_bytes(mesh))
        call read('problem=flame refine-variables=ash,dens')
        call expect('the front', .not. error%failed() .and. given%dims == 2 .and. given%boundary(2, 1) == reflecting .and. &
                    given%boundary(2, 2) == periodic .and. agrees([given%flame_speed, given%flame_release], [0.1_r8, 0.0_r8]))
        call expect('ash', all(given%refine_variables == [first_species + 1, v_dens]))
    end subroutine by_problem

    subroutine contradictions()
        call read('geometry=cylindrical lowest-level=4 upper-x=-1 lower-x=-2 boundary-y-lower=periodic '// &
                  'refine-variables=dens,vel coarsen-below=0.9 boundary-x-lower=outflow')
        call expect('exit code', error%code == exit_usage)
        call expect_fault('geometry cylindrical needs dims 2')
        call expect_fault('lowest-level 4 is above highest-level 3')
        call expect_fault('geometry cylindrical needs lower-x 0')
        call expect_fault('geometry cylindrical needs boundary-x-lower reflecting')
        call expect_fault('boundary-y is periodic')
        call expect_fault("refine-variables takes some of dens,momx,momy,momz,ener,pres,temp,gamc, not 'vel'")
        call expect_fault('coarsen-below is not below refine-above')
        call read('lower-x=1 lower-y=2')
        call expect_fault('lower-x is not below upper-x')
        call expect_fault('lower-y is not below upper-y')
        call read('dims=2 roots-z=2 boundary-z=outflow problem=sod sod-direction=z')
        call expect_fault('roots-z')
        call expect_fault('boundary-z')
        call expect_fault('sod-direction z needs dims 3')
        call read('dims=2 geometry=cylindrical problem=wave')
        call expect_fault('problem wave needs geometry cartesian')
        call expect_fault('problem wave needs periodic boundaries')
        call read('dims=2 geometry=cylindrical problem=sod')
        call expect_fault('sod-direction y')
        call read('sedov-octant=true boundary-z-lower=outflow')
        call expect_fault('sedov-octant needs reflecting lower boundaries')
        call read('problem=flame geometry=cylindrical flame-speed=0')
        call expect_fault('problem flame needs geometry cartesian')
        call expect_fault('problem flame needs a flame-speed above 0')
        call read('problem=snia2d geometry=cartesian errors=true lowest-temperature=1e8 ignition-offset=-1.6e8 star-level=6')
        call expect_fault('problem snia2d needs geometry cylindrical')
        call expect_fault('snia2d')
        call expect_fault('lowest-temperature is above star-temperature')
        call expect_fault('ignition-radius')
        call expect_fault('star-level 6 is above highest-level 5')
        call read('uniform=true lowest-level=1')
        call expect_fault('lowest-level')
        call read('block-size=8')
        call expect_fault('block-size 8 needs scheme flash')
        call read('max-blocks=3 memory=1GiB fill-memory=true')
        call expect_fault('max-blocks and memory')
        call expect_fault('fill-memory')
        call read('end-time=0')
        call expect_fault('--end-time takes a number above 0')
    end subroutine contradictions

    !> Read parameters as the command line would give them: NAME=VALUE and blanks.
    subroutine read(words)
        character(*), intent(in) :: words
        character(:), allocatable :: rest, word
        integer :: blank, equals

        error = error_t()
        options = options_t()
        call options%start('test_parameters', 'reads parameters')
        call declare_parameters(options, 'none')
        rest = trim(words)//' '
        do while (len(rest) > 1)
            blank = index(rest, ' ')
            word = rest(:blank - 1)
            rest = rest(blank + 1:)
            equals = index(word, '=')
            call options%replace(word(:equals - 1), word(equals + 1:), error)
            if (error%failed()) return
        end do
        call read_parameters(options, given, error)
    end subroutine read

    !> Expect that the error contains `words`, names of parameters.
    subroutine expect_fault(words)
        character(*), intent(in) :: words

        if (error%failed()) then
            if (index(error%message, words) > 0) return
            print *, error%message
        end if
        failures = failures + 1
        print *, 'missing: ', words
    end subroutine expect_fault

    pure logical function agrees(a, b)
        real(r8), intent(in) :: a(:), b(:)

        agrees = all(abs(a - b) <= 1.0e-15_r8)
    end function agrees

    subroutine expect(label, holds)
        character(*), intent(in) :: label
        logical, intent(in) :: holds

        if (holds) return
        failures = failures + 1
        print *, 'wrong: ', label
        if (error%failed()) print *, error%message
    end subroutine expect

end program test_parameters
