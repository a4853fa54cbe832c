!> GNU-style long options: `--name value` or `--name=value`, flags without a value.
module pw_options
    use, intrinsic :: iso_fortran_env, only: output_unit
    use pw_error, only: error_t, exit_usage
    use pw_json, only: json_t
    use pw_kinds, only: i8, r8
    use pw_option, only: option_bytes, option_choice, option_count, option_flag, option_real, option_t, option_text, &
        replaced, rules_t
    use pw_text, only: shown, text_to_real
    implicit none
    private

    public :: option_bytes, option_choice, option_count, option_flag, option_real, option_text, rules_t

    !> The options of one program: declared with `add`, then read by `parse`, then queried by `get`.
    type, public :: options_t
        private
        character(:), allocatable :: program, summary
        type(option_t), allocatable :: list(:)
    contains
        procedure :: start
        procedure :: add
        procedure :: parse
        procedure :: replace
        procedure :: set_default
        procedure :: ladder
        procedure :: given
        procedure :: print_help
        procedure :: print_list
        procedure :: write_values
        procedure :: name_of
        procedure, private :: get_integer, get_real, get_text, get_logical
        generic :: get => get_integer, get_real, get_text, get_logical
        procedure, private :: find, declared, set, usage
    end type options_t

contains

    !> Begin the options of `program`; `summary` is the first line of --help.
    subroutine start(self, program, summary)
        class(options_t), intent(inout) :: self
        character(*), intent(in) :: program, summary

        self%program = program
        self%summary = summary
        allocate (self%list(0))
        call self%add('list-options', option_flag, '', 'print these options as JSON and exit')
        call self%add('help', option_flag, '', 'print this help and exit')
        call self%add('version', option_flag, '', 'print version, compilers, flags and configuration and exit')
    end subroutine start

    !> Declare an option. `values`: for option_choice the words, separated by '|'; otherwise the values of a sweep, separated
    !> by ',', those below the lowest left out. A count, size or real whose default is empty has no value until it is given
    !> or `set_default` is called.
    subroutine add(self, name, kind, default, help, rules, values)
        class(options_t), intent(inout) :: self
        character(*), intent(in) :: name, default, help
        integer, intent(in) :: kind
        type(rules_t), intent(in), optional :: rules
        character(*), intent(in), optional :: values
        type(option_t) :: new

        new%name = name
        new%kind = kind
        new%default = default
        new%value = default
        new%help = help
        new%choices = ''
        new%ladder = ''
        if (present(rules)) new%rules_t = rules
        if (present(values) .and. kind == option_choice) new%choices = values
        if (present(values) .and. kind /= option_choice) call new%set_ladder(values)
        self%list = [self%list, new]
    end subroutine add

    !> Read the program's command line. Unknown options, missing or malformed values: exit_usage.
    subroutine parse(self, error)
        class(options_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word
        integer :: i, at, equals

        i = 1
        do while (i <= command_argument_count() .and. .not. error%failed())
            word = argument(i)
            i = i + 1
            equals = index(word//'=', '=')
            at = 0
            if (equals > 3) at = self%find(word(3:equals - 1))
            if (len(word) < 3 .or. index(word, '--') /= 1) then
                call self%usage(error, "'"//word//"' is not an option: options start with --")
            else if (at == 0) then
                call self%usage(error, "unknown option '"//word(:equals - 1)//"'")
            else if (equals <= len(word)) then
                call self%set(at, word(equals + 1:), .true., error)
            else if (self%list(at)%kind == option_flag) then
                call self%set(at, 'true', .true., error)
            else if (i > command_argument_count()) then
                call self%usage(error, "'"//word//"' needs a value")
            else
                call self%set(at, argument(i), .true., error)
                i = i + 1
            end if
        end do
    end subroutine parse

    !> Store a value: `given` by the user or the program, or a default, which replaces only a default. Malformed value: exit_usage.
    subroutine set(self, at, value, given, error)
        class(options_t), intent(inout) :: self
        integer, intent(in) :: at
        character(*), intent(in) :: value
        logical, intent(in) :: given
        type(error_t), intent(inout) :: error
        character(:), allocatable :: fault

        associate (option => self%list(at))
            if (option%given .and. .not. given) return
            fault = option%fault(value)
            if (len(fault) > 0 .and. option%kind == option_flag) then
                call self%usage(error, "'--"//option%name//"' takes no value but true or false, not '"//shown(value)//"'")
            else if (len(fault) > 0) then
                call self%usage(error, '--'//option%name//fault)
            else
                option%value = option%kept(value)
                option%given = given
            end if
        end associate
    end subroutine set

    !> Change the default of an option that nothing else has set. Malformed value: exit_usage.
    subroutine set_default(self, name, value, error)
        class(options_t), intent(inout) :: self
        character(*), intent(in) :: name, value
        type(error_t), intent(inout) :: error

        call self%set(self%declared(name), value, .false., error)
    end subroutine set_default

    !> Set an option as the command line would. Unknown option, malformed value: exit_usage.
    subroutine replace(self, name, value, error)
        class(options_t), intent(inout) :: self
        character(*), intent(in) :: name, value
        type(error_t), intent(inout) :: error
        integer :: at

        at = self%find(name)
        if (at == 0) call self%usage(error, "unknown option '--"//name//"'")
        if (at > 0) call self%set(at, value, .true., error)
    end subroutine replace

    !> The values of a sweep over an option, separated by ','; empty if it has none or does not exist.
    function ladder(self, name) result(values)
        class(options_t), intent(in) :: self
        character(*), intent(in) :: name
        character(:), allocatable :: values
        integer :: at

        values = ''
        at = self%find(name)
        if (at == 0) return
        values = self%list(at)%ladder
        if (self%list(at)%kind == option_choice) values = replaced(self%list(at)%choices, '|', ',')
    end function ladder

    !> The name of option `i`, from 1; empty beyond the last.
    pure function name_of(self, i) result(name)
        class(options_t), intent(in) :: self
        integer, intent(in) :: i
        character(:), allocatable :: name

        name = ''
        if (i <= size(self%list)) name = self%list(i)%name
    end function name_of

    !> Whether the command line or `replace` sets the option.
    pure logical function given(self, name)
        class(options_t), intent(in) :: self
        character(*), intent(in) :: name
        integer :: at

        at = self%find(name)
        given = .false.
        if (at > 0) given = self%list(at)%given
    end function given

    !> The value of a count or, in bytes, of a size.
    subroutine get_integer(self, name, value)
        class(options_t), intent(in) :: self
        character(*), intent(in) :: name
        integer(i8), intent(out) :: value

        value = self%list(self%declared(name))%get_integer()
    end subroutine get_integer

    !> The value of a real.
    subroutine get_real(self, name, value)
        class(options_t), intent(in) :: self
        character(*), intent(in) :: name
        real(r8), intent(out) :: value
        logical :: ok

        call text_to_real(self%list(self%declared(name))%value, value, ok)
        if (.not. ok) error stop 'pw_options: the program reads a number that has no value:  '//name
    end subroutine get_real

    !> The value of any option, as it was given.
    subroutine get_text(self, name, value)
        class(options_t), intent(in) :: self
        character(*), intent(in) :: name
        character(:), allocatable, intent(out) :: value

        value = self%list(self%declared(name))%value
    end subroutine get_text

    !> Whether a flag is set.
    subroutine get_logical(self, name, value)
        class(options_t), intent(in) :: self
        character(*), intent(in) :: name
        logical, intent(out) :: value

        value = self%list(self%declared(name))%value == 'true'
    end subroutine get_logical

    !> The help text, on standard output.
    subroutine print_help(self)
        class(options_t), intent(in) :: self
        integer :: i

        write (output_unit, '(a)') self%program//': '//self%summary, '', 'Usage: '//self%program//' [OPTION]...', ''
        do i = 1, size(self%list)
            write (output_unit, '(2x,a)') self%list(i)%help_line()
        end do
        write (output_unit, '(a)') '', 'Exit status: 0 ran and the result is right; 1 the result failed its check;', &
            '2 wrong usage; 3 the page policy is unavailable; 4 the system refused something else.'
    end subroutine print_help

    !> Print the options as a JSON array on standard output, for programs that run this one.
    subroutine print_list(self)
        class(options_t), intent(in) :: self
        type(json_t) :: json
        integer :: i

        call json%open_array('')
        do i = 1, size(self%list)
            call self%list(i)%write_declaration(json)
        end do
        call json%close_array()
        write (output_unit, '(a)') json%text()
    end subroutine print_list

    !> The effective values as members of the JSON object that is open in `json`, but for options that only select what to
    !> print.
    subroutine write_values(self, json)
        class(options_t), intent(in) :: self
        type(json_t), intent(inout) :: json
        character(12), parameter :: printing(4) = [character(12) :: 'help', 'version', 'list-options', 'record']
        integer :: i

        do i = 1, size(self%list)
            if (all(printing /= self%list(i)%name)) call self%list(i)%write_value(json)
        end do
    end subroutine write_values

    !> Position of an option in the list, 0 if it was not declared.
    pure integer function find(self, name) result(at)
        class(options_t), intent(in) :: self
        character(*), intent(in) :: name

        do at = size(self%list), 1, -1
            if (self%list(at)%name == name) return
        end do
        at = 0
    end function find

    !> Position of an option that the program must have declared: reading another one is a bug of the program.
    integer function declared(self, name) result(at)
        class(options_t), intent(in) :: self
        character(*), intent(in) :: name

        at = self%find(name)
        if (at == 0) error stop 'pw_options: the program reads an option that it did not declare:  '//name
    end function declared

    subroutine usage(self, error, message)
        class(options_t), intent(in) :: self
        type(error_t), intent(inout) :: error
        character(*), intent(in) :: message

        call error%raise(exit_usage, message, 'pw_options', self%program//' --help lists the options')
    end subroutine usage

    function argument(i) result(word)
        integer, intent(in) :: i
        character(:), allocatable :: word
        integer :: length

        call get_command_argument(i, length=length)
        allocate (character(length) :: word)
        call get_command_argument(i, word)
    end function argument

end module pw_options
