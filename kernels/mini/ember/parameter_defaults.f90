!> The defaults of the options that depend on the problem, on other options and on memory.
module ember_parameter_defaults
    use ember_container, only: block_bytes
    use ember_mesh, only: mesh_t, v_game
    use ember_nuclei, only: carbon_to_nickel
    use ember_parameter_options, only: axis
    use ember_ppm, only: sweep_guards
    use pw_error, only: error_t
    use pw_kinds, only: i8, r8
    use pw_options, only: options_t
    use pw_text, only: to_text
    implicit none
    private

    character(4), parameter, public :: fuel_and_ash(2) = ['fuel', 'ash ']
    real(r8), parameter :: star_domain = 4.096e8_r8       ! radius, and half the height [cm]

    public :: count_of, count_of_choice, dims_of, is_split, note, problem_defaults

contains

    !> The problem's requirements for parameters that were not given.
    subroutine problem_defaults(options, faults, error)
        type(options_t), intent(inout) :: options
        character(:), allocatable, intent(inout) :: faults
        type(error_t), intent(inout) :: error
        character(:), allocatable :: problem, level
        logical :: uniform, star
        integer :: i, dims

        call options%get('problem', problem)
        star = problem == 'snia2d'
        call options%set_default('dims', by_problem(problem, '3', flame='2', snia2d='2'), error)
        call options%set_default('geometry', by_problem(problem, 'cartesian', snia2d='cylindrical'), error)
        dims = dims_of(options)
        call options%set_default('end-time', by_problem(problem, '1', sedov='0.05', sod='0.2', flame='4'), error)
        call options%set_default('first-dt-factor', by_problem(problem, '1', sedov='0.1'), error)
        call options%set_default('flame-speed', by_problem(problem, '0', flame='0.1'), error)
        call options%set_default('flame-release', by_problem(problem, '0', snia2d=to_text(carbon_to_nickel, 'es24.16e3')), error)
        call options%set_default('refine-variables', by_problem(problem, 'dens,pres', flame='none', snia2d='none'), error)

        call options%set_default('parents', trim(merge('data', 'none', is_split(options))), error)
        call options%set_default('highest-level', by_problem(problem, '3', snia2d='5'), error)
        call options%get('uniform', uniform)
        call options%get('highest-level', level)
        if (uniform .and. options%given('lowest-level')) &
            call note(faults, 'lowest-level has no effect with uniform: all blocks have the highest level')
        if (uniform) call options%set_default('lowest-level', level, error)
        call options%set_default('star-level', to_text(max(0, count_of(options, 'highest-level') - 1)), error)

        do i = 1, 3
            call options%set_default('roots-'//axis(i), merge('2', '1', star .and. i == 2), error)
        end do
        call fill_memory(options, dims, star, faults, error)
        call domain_defaults(options, problem, dims, error)
    end subroutine problem_defaults

    !> The domain and its boundaries.
    subroutine domain_defaults(options, problem, dims, error)
        type(options_t), intent(inout) :: options
        character(*), intent(in) :: problem
        integer, intent(in) :: dims
        type(error_t), intent(inout) :: error
        character(:), allocatable :: geometry, both
        integer(i8) :: roots(3)
        logical :: octant, star
        integer :: i

        star = problem == 'snia2d'
        call options%get('sedov-octant', octant)
        call options%get('geometry', geometry)
        do i = 1, 3
            call options%get('roots-'//axis(i), roots(i))
        end do
        if (dims == 2) roots(3) = 1
        do i = 1, 3
            both = '0'
            if (star .and. i == 2) both = to_text(-star_domain, 'es24.16e3')
            call options%set_default('lower-'//axis(i), both, error)
            both = to_text(real(roots(i), r8)/real(maxval(roots), r8), 'es24.16e3')
            if (star) both = to_text(star_domain, 'es24.16e3')
            call options%set_default('upper-'//axis(i), both, error)
            both = by_problem(problem, 'outflow', wave='periodic')
            if (problem == 'flame') both = trim(merge('reflecting', 'periodic  ', i == 1))
            call options%set_default('boundary-'//axis(i), both, error)
            call options%get('boundary-'//axis(i), both)
            call options%set_default('boundary-'//axis(i)//'-upper', both, error)
            if (problem == 'sedov' .and. octant .or. geometry == 'cylindrical' .and. i == 1) both = 'reflecting'
            call options%set_default('boundary-'//axis(i)//'-lower', both, error)
        end do
    end subroutine domain_defaults

    !> The value for `problem`, or the one for all others.
    pure function by_problem(problem, others, sedov, sod, wave, flame, snia2d) result(value)
        character(*), intent(in) :: problem, others
        character(*), intent(in), optional :: sedov, sod, wave, flame, snia2d
        character(:), allocatable :: value

        value = others
        if (problem == 'sedov' .and. present(sedov)) value = sedov
        if (problem == 'sod' .and. present(sod)) value = sod
        if (problem == 'wave' .and. present(wave)) value = wave
        if (problem == 'flame' .and. present(flame)) value = flame
        if (problem == 'snia2d' .and. present(snia2d)) value = snia2d
    end function by_problem

    !> With --fill-memory: the roots that fit into the memory; for a star (`star`) twice as many along the axis.
    subroutine fill_memory(options, dims, star, faults, error)
        type(options_t), intent(inout) :: options
        integer, intent(in) :: dims
        logical, intent(in) :: star
        character(:), allocatable, intent(inout) :: faults
        type(error_t), intent(inout) :: error
        type(mesh_t) :: mesh
        character(:), allocatable :: word
        integer(i8) :: memory, level, blocks, roots
        logical :: wanted
        integer :: i

        call options%get('fill-memory', wanted)
        if (.not. wanted) return
        call options%get('memory', memory)
        call options%get('lowest-level', level)
        mesh%dims = dims
        if (is_split(options)) then
            call mesh%set_shape(count_of_choice(options, 'block-size'), sweep_guards)
            mesh%n_variables = v_game
        end if
        mesh%n_variables = mesh%n_variables + count_of(options, 'padding-variables')
        if (star) mesh%n_variables = mesh%n_variables + size(fuel_and_ash)
        blocks = memory/8*7/block_bytes(mesh)/2**min(dims*level, 62_i8)
        call options%get('parents', word)
        ! All parents of the blocks of a level are at most this share of them.
        if (word == 'data' .and. level > 0) blocks = blocks*(2**dims - 1)/2**dims
        if (star) blocks = blocks/2
        roots = 1
        do while ((roots + 1)**dims <= blocks)
            roots = roots + 1
        end do
        if (blocks < 1) call note(faults, 'fill-memory: not even one root of lowest-level '//to_text(level)//' fits into memory')
        do i = 1, dims
            if (options%given('roots-'//axis(i))) call note(faults, 'fill-memory chooses roots-'//axis(i)//': set only one of them')
            call options%set_default('roots-'//axis(i), to_text(merge(2*roots, roots, star .and. i == 2)), error)
        end do
    end subroutine fill_memory

    !> The number that an option's choice is.
    integer function count_of_choice(options, name) result(number)
        type(options_t), intent(in) :: options
        character(*), intent(in) :: name
        character(:), allocatable :: word

        call options%get(name, word)
        read (word, *) number
    end function count_of_choice

    !> Whether the scheme is `flash`.
    logical function is_split(options)
        type(options_t), intent(in) :: options
        character(:), allocatable :: word

        call options%get('scheme', word)
        is_split = word == 'flash'
    end function is_split

    integer function dims_of(options)
        type(options_t), intent(in) :: options
        character(:), allocatable :: word

        call options%get('dims', word)
        dims_of = merge(2, 3, word == '2')
    end function dims_of

    !> A count, up to the largest default integer.
    integer function count_of(options, name)
        type(options_t), intent(in) :: options
        character(*), intent(in) :: name
        integer(i8) :: value

        call options%get(name, value)
        count_of = int(min(value, int(huge(1), i8)))
    end function count_of

    subroutine note(faults, fault)
        character(:), allocatable, intent(inout) :: faults
        character(*), intent(in) :: fault

        faults = faults//new_line('a')//'  '//fault
    end subroutine note

end module ember_parameter_defaults
