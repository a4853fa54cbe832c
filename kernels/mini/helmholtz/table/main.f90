!> pw-eos-table: computes the table of the equation of state of degenerate matter.
program main
    !$ use omp_lib, only: omp_get_max_threads
    use eos_table, only: eos_table_t, provenance_t
    use eos_table_public, only: begin_public_table, discard_public_table, end_public_table
    use eos_table_terminal, only: end_by_signal, interrupted, watch_signals
    use pw_error, only: error_t, stop_on
    use pw_hdf5, only: file_t
    use pw_kinds, only: i4, i8, r8
    use pw_options, only: option_choice, option_count, option_text, options_t, rules_t
    use pw_program, only: pagewise_built_configuration, read_command_line
    use pw_record, only: configuration_t
    use pw_system, only: utc_now
    use pw_text, only: to_text
    use pw_threads, only: threads_begin
    use pw_timer, only: wall_seconds
    implicit none
    character(*), parameter :: program = 'pw-eos-table', format_pagewise = 'pagewise', format_public = 'helmholtz'
    type(options_t) :: options
    type(configuration_t) :: configuration
    type(error_t) :: error
    type(eos_table_t) :: table
    type(file_t) :: file
    character(:), allocatable :: path, format
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
    call options%get('format', format)
    call options%set_default('output', trim(merge('helm_table.dat', 'helmholtz.h5  ', format == format_public)), error)
    call options%get('output', path)
    call options%get('densities', densities)
    call options%get('temperatures', temperatures)
    call options%get('threads', threads)
    call threads_begin(threads, error)
    call stop_on(program, error)
    call watch_signals()
    call table%start(int(min(densities, huge(1_i4) + 0_i8)), int(min(temperatures, huge(1_i4) + 0_i8)), error)
    call stop_on(program, error)
    if (format == format_public) then
        call begin_public_table(path, error)
    else
        call table%begin_file(path, file, error)
    end if
    call stop_on(program, error)
    call table%make(program, error)
    call end_file()
    call stop_on(program, error)
    call end_by_signal()
    print '(a)', program//': '//path//' has '//to_text(densities)//' x '//to_text(temperatures)//' points, computed in '// &
        to_text(wall_seconds() - begin, 'f0.1')//' s by '//to_text(threads)//' thread(s)'

contains

    subroutine declare_options()
        call options%start(program, 'computes the table of the free energy of electrons and positrons, for the equation of state')
        call options%add('output', option_text, '', 'file to write; default: helmholtz.h5, or helm_table.dat for '// &
                         '--format helmholtz')
        call options%add('format', option_choice, format_pagewise, 'HDF5 for this project, or the text of the public Helmholtz '// &
                         'routine of Timmes and Swesty', values=format_pagewise//'|'//format_public)
        call options%add('densities', option_count, '541', 'number of points from 1e-12 to 1e15 g/cm^3', rules_t(lowest=2_i8))
        call options%add('temperatures', option_count, '201', 'number of points from 1e3 to 1e13 K', rules_t(lowest=2_i8))
        call options%add('threads', option_count, to_text(threads), 'threads', rules_t(lowest=1_i8))
    end subroutine declare_options

    !> Write the table, or remove its file after an error or an interrupt.
    subroutine end_file()
        type(provenance_t) :: provenance
        logical :: complete

        complete = .not. (interrupted() .or. error%failed())
        if (format == format_public) then
            if (complete) then
                call end_public_table(table, path, error)
            else
                call discard_public_table()
            end if
        else if (complete) then
            ! gfortran 12's structure constructor loses the lengths of some components.
            provenance%program = program
            provenance%version = configuration%version
            provenance%compiler = configuration%compiler
            provenance%date = utc_now()
            call read_command(provenance%command_line)
            call table%end_file(file, provenance, error)
        else
            call file%discard()
        end if
    end subroutine end_file

    !> The words of the command line, separated by blanks.
    subroutine read_command(text)
        character(:), allocatable, intent(out) :: text
        integer :: length

        call get_command(length=length)
        allocate (character(length) :: text)
        call get_command(text)
    end subroutine read_command

end program main
