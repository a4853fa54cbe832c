!> pw-helmholtz: the Helmholtz equation of state, measured.
program main
    use helmholtz_driver, only: run_t
    use helmholtz_parameters, only: declare_parameters, read_parameters
    use pw_error, only: end_program, error_t
    use pw_openmp_runtime, only: verify_runtime
    use pw_options, only: options_t
    use pw_program, only: pagewise_built_configuration, read_command_line, report_failure
    use pw_record, only: configuration_t
    implicit none
    character(*), parameter :: program = 'pw-helmholtz'
    type(run_t) :: run
    type(options_t) :: options
    type(configuration_t) :: configuration
    type(error_t) :: error
    logical :: answered

    configuration = pagewise_built_configuration()
    call options%start(program, 'the equation of state of degenerate stellar matter, over rows of zones')
    call declare_parameters(options, configuration)
    call read_command_line(options, program, configuration, answered, error)
    if (answered) stop
    call verify_runtime(configuration, error)
    if (.not. error%failed()) call read_parameters(options, configuration, run%parameters, error)
    if (.not. error%failed()) call run%begin(error)
    if (.not. error%failed()) call run%measure(error)
    if (.not. error%failed()) call run%finish(options, configuration, error)
    if (error%failed()) then
        call report_failure(program, run%parameters%record, configuration, options, error)
        call end_program(error%code)
    end if
end program main
