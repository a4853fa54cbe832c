!> pw-eos-table: computes the table of the equation of state of degenerate matter.
program main
    !$ use omp_lib, only: omp_get_max_threads
    use eos_table, only: eos_table_t, provenance_t
    use pw_error, only: error_t, stop_on
    use pw_kinds, only: i4, i8, r8
    use pw_options, only: option_count, option_text, options_t, rules_t
    use pw_program, only: pagewise_built_configuration, read_command_line
    use pw_record, only: configuration_t
    use pw_system, only: utc_now
    use pw_text, only: to_text
    use pw_threads, only: threads_begin
    use pw_timer, only: wall_seconds
    implicit none
    character(*), parameter :: program = 'pw-eos-table'
    type(options_t) :: options
    type(configuration_t) :: configuration
    type(error_t) :: error
    type(eos_table_t) :: table
    type(provenance_t) :: provenance
    character(:), allocatable :: path
    integer(i8) :: densities, temperatures, threads
    real(r8) :: begin
    logical :: answered

    threads = 1
    !$ threads = omp_get_max_threads()
    configuration = pagewise_built_configuration()
    call declare_options()
    call read_command_line(options, program, configuration, answered, error)
    call stop_on(program, error)
    if (answered) stop

    begin = wall_seconds()
    call options%get('output', path)
    call options%get('densities', densities)
    call options%get('temperatures', temperatures)
    call options%get('threads', threads)
    call threads_begin(threads, error)
    call stop_on(program, error)
    call table%start(int(min(densities, huge(1_i4) + 0_i8)), int(min(temperatures, huge(1_i4) + 0_i8)), error)
    call stop_on(program, error)
    call table%make(error)
    call stop_on(program, error)
    ! gfortran 12's structure constructor loses the lengths of some components.
    provenance%program = program
    provenance%version = configuration%version
    provenance%compiler = configuration%compiler
    provenance%date = utc_now()
    call read_command(provenance%command_line)
    call table%write(path, provenance, error)
    call stop_on(program, error)
    print '(a)', program//': '//path//' has '//to_text(densities)//' x '//to_text(temperatures)//' points, computed in '// &
        to_text(wall_seconds() - begin, 'f0.1')//' s by '//to_text(threads)//' thread(s)'

contains

    subroutine declare_options()
        call options%start(program, 'computes the table of the free energy of electrons and positrons, for the equation of state')
        call options%add('output', option_text, 'helmholtz.h5', 'file to write')
        call options%add('densities', option_count, '541', 'number of points from 1e-12 to 1e15 g/cm^3', rules_t(lowest=2_i8))
        call options%add('temperatures', option_count, '201', 'number of points from 1e3 to 1e13 K', rules_t(lowest=2_i8))
        call options%add('threads', option_count, to_text(threads), 'threads', rules_t(lowest=1_i8))
    end subroutine declare_options

    !> The words of the command line, separated by blanks.
    subroutine read_command(text)
        character(:), allocatable, intent(out) :: text
        integer :: length

        call get_command(length=length)
        allocate (character(length) :: text)
        call get_command(text)
    end subroutine read_command

end program main
