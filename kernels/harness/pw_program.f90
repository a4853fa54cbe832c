!> Shared code of the main programs of kernels, mini-apps and tools: common options, and how they fail.
module pw_program
    use, intrinsic :: iso_fortran_env, only: output_unit
    use pw_error, only: error_t, exit_check, exit_usage, report_error
    use pw_evidence, only: print_version
    use pw_options, only: options_t
    use pw_processor, only: processor_check
    use pw_record, only: configuration_t
    use pw_record_json, only: failure_to_json
    use pw_system, only: append_line
    implicit none
    private

    interface
        !> The build configuration of the executable; its object file is linked with the program.
        function pagewise_built_configuration() result(built)
            import :: configuration_t
            type(configuration_t) :: built
        end function pagewise_built_configuration
    end interface

    public :: pagewise_built_configuration, read_command_line, report_failure

contains

    !> Parse the command line for the declared options. `answered` if it requests help, version or a list of options: then
    !> there is nothing else to do. `quiet`: another rank prints the answer. Errors: exit_usage, and those of the processor.
    subroutine read_command_line(options, program, configuration, answered, error, quiet)
        type(options_t), intent(inout) :: options
        character(*), intent(in) :: program
        type(configuration_t), intent(in) :: configuration
        logical, intent(out) :: answered
        type(error_t), intent(inout) :: error
        logical, intent(in), optional :: quiet

        answered = .false.
        if (error%failed()) return
        call options%parse(error)
        if (error%failed()) return
        answered = options%given('help') .or. options%given('version') .or. options%given('list-options')
        if (.not. answered) call processor_check(configuration, error)
        if (present(quiet)) then
            if (quiet) return
        end if
        if (options%given('help')) then
            call options%print_help()
        else if (options%given('version')) then
            call print_version(program, configuration)
        else if (options%given('list-options')) then
            call options%print_list()
        end if
    end subroutine read_command_line

    !> Report what failed, and append it to the record file `record` if there is one, so that readers of records see why
    !> one is missing. Wrong usage is not recorded; a result that failed its check already has a record.
    subroutine report_failure(program, record, configuration, options, error)
        character(*), intent(in) :: program
        character(:), allocatable, intent(in) :: record
        type(configuration_t), intent(in) :: configuration
        type(options_t), intent(in) :: options
        type(error_t), intent(in) :: error
        type(error_t) :: second
        character(*), parameter :: prefix = 'pw-'

        flush (output_unit)
        call report_error(program, error)
        if (error%code == exit_usage .or. error%code == exit_check .or. .not. allocated(record)) return
        if (len(record) == 0) return
        call append_line(record, failure_to_json(program(len(prefix) + 1:), configuration, options, error), second)
        if (second%failed() .and. second%message /= error%message) call report_error(program, second)
    end subroutine report_failure

end module pw_program
