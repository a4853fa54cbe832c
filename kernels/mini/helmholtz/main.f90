!> pw-helmholtz: the Helmholtz equation of state, measured.
program main
    use helmholtz_driver, only: run_t
    use helmholtz_parameters, only: declare_parameters, read_parameters
    use pw_error, only: error_t, exit_usage, report_error
    use pw_evidence, only: print_version
    use pw_options, only: options_t
    use pw_record, only: configuration_t, failure_to_json
    use pw_system, only: append_line
    implicit none
    character(*), parameter :: program = 'pw-helmholtz'
    type(run_t) :: run
    type(options_t) :: options
    type(configuration_t) :: configuration
    type(error_t) :: error

    interface
        !> What the executable was built as.
        function pagewise_built_configuration() result(built)
            import :: configuration_t
            type(configuration_t) :: built
        end function pagewise_built_configuration
    end interface

    configuration = pagewise_built_configuration()
    call options%start(program, 'the equation of state of degenerate stellar matter, over rows of zones')
    call declare_parameters(options, configuration)
    call options%parse(error)
    if (.not. error%failed()) then
        if (options%help_wanted) then
            call options%print_help()
            stop
        else if (options%version_wanted) then
            call print_version(program, configuration)
            stop
        else if (options%list_wanted) then
            call options%print_list()
            stop
        end if
        call read_parameters(options, configuration, run%parameters, error)
    end if
    if (.not. error%failed()) call run%begin(error)
    if (.not. error%failed()) call run%measure(error)
    if (.not. error%failed()) call run%finish(options, configuration, error)
    if (error%failed()) then
        call report_error(program, error)
        call keep_failure()
        stop error%code, quiet=.true.
    end if

contains

    !> Whoever reads records learns why one is missing; the record of a result that failed its check is there already.
    subroutine keep_failure()
        type(error_t) :: second

        if (error%code == exit_usage .or. run%recorded .or. .not. allocated(run%parameters%record)) return
        if (len(run%parameters%record) == 0) return
        call append_line(run%parameters%record, failure_to_json('helmholtz', configuration, options, error), second)
        if (second%failed() .and. second%message /= error%message) call report_error(program, second)
    end subroutine keep_failure

end program main
