!> pw-ember: block-structured hydrodynamics with adaptive refinement.
program main
    use ember_driver, only: run_t
    use ember_parallel, only: comm_t
    use ember_parameter_options, only: declare_parameters
    use ember_parameter_values, only: read_parameters
    use pw_error, only: end_program, error_t
    use pw_openmp_runtime, only: verify_runtime
    use pw_options, only: options_t
    use pw_program, only: pagewise_built_configuration, read_command_line, report_failure
    use pw_record, only: configuration_t
    implicit none
    character(*), parameter :: program = 'pw-ember'
    type(run_t), target :: run
    type(options_t) :: options
    type(configuration_t) :: configuration
    type(error_t) :: error

    configuration = pagewise_built_configuration()
    call options%start(program, 'block-structured hydrodynamics with adaptive refinement')
    call declare_parameters(options, configuration%hugepages)
    call work(run%simulation%comm)
    if (error%failed()) call end_program(error%code)

contains

    !> Ranks first, so that one of them answers the command line and reports errors.
    subroutine work(comm)
        type(comm_t), intent(inout) :: comm
        logical :: first, answered

        answered = .false.
        call comm%begin(error)
        first = comm%rank == 0
        call read_command_line(options, program, configuration, answered, error, quiet=.not. first)
        if (.not. answered) then
            call verify_runtime(configuration, error)
            if (.not. error%failed()) call read_parameters(options, run%parameters, error)
            if (.not. error%failed()) call run%begin(options, error)
            if (.not. error%failed()) call run%loop(options, error)
            if (.not. error%failed()) call run%finish(options, configuration, error)
            if (error%failed() .and. first) call report_failure(program, run%parameters%record, configuration, options, error)
        end if
        call comm%end()
    end subroutine work

end program main
