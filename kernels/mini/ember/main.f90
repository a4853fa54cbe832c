!> pw-ember: block-structured hydrodynamics with adaptive refinement.
program main
    use ember_driver, only: inherit_parameters, run_t
    use ember_parameters, only: declare_parameters, read_parameters
    use pw_error, only: error_t, exit_check, exit_usage, report_error
    use pw_evidence, only: print_version
    use pw_options, only: options_t
    use pw_record, only: configuration_t, failure_to_json
    use pw_system, only: append_line
    implicit none
    character(*), parameter :: program = 'pw-ember'
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
    call options%start(program, 'block-structured hydrodynamics with adaptive refinement')
    call declare_parameters(options, configuration%hugepages)
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
    end if
    call work(error)

contains

    !> Run, and end with the code of what failed, once for all ranks.
    subroutine work(error)
        type(error_t), intent(inout) :: error
        logical :: first

        first = .true.
        if (.not. error%failed()) call run%simulation%comm%begin(error)
        first = run%simulation%comm%rank == 0
        if (.not. error%failed()) call inherit_parameters(options, run%simulation%comm, error)
        if (.not. error%failed()) call read_parameters(options, run%parameters, error)
        if (.not. error%failed()) call run%begin(options, error)
        if (.not. error%failed()) call run%loop(options, error)
        if (.not. error%failed()) call run%finish(options, configuration, error)
        if (error%failed() .and. first) then
            call report_error(program, error)
            call keep_failure(error)
        end if
        call run%simulation%comm%end()
        if (error%failed()) stop error%code, quiet=.true.
    end subroutine work

    !> Whoever reads records learns why one is missing.
    subroutine keep_failure(error)
        type(error_t), intent(in) :: error
        type(error_t) :: second

        if (error%code == exit_usage .or. error%code == exit_check .or. .not. allocated(run%parameters%record)) return
        if (len(run%parameters%record) == 0) return
        call append_line(run%parameters%record, failure_to_json('ember', configuration, options, error), second)
        if (second%failed() .and. second%message /= error%message) call report_error(program, second)
    end subroutine keep_failure

end program main
