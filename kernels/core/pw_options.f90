!> GNU-style long options: `--name value` or `--name=value`, flags without a value.
module pw_options
    use, intrinsic :: iso_fortran_env, only: output_unit
    use pw_error, only: error_t, exit_usage
    use pw_json, only: json_t
    use pw_kinds, only: i8
    use pw_text, only: bytes_to_text, text_to_bytes, to_text
    implicit none
    private

    integer, parameter, public :: option_flag = 1     !< given or not
    integer, parameter, public :: option_count = 2    !< a whole number, at least `lowest`
    integer, parameter, public :: option_bytes = 3    !< a size such as 256MiB
    integer, parameter, public :: option_choice = 4   !< one of a list of words
    integer, parameter, public :: option_text = 5     !< any text

    type :: option_t
        character(:), allocatable :: name, value, default, help, choices, ladder
        integer :: kind = option_text
        integer(i8) :: lowest = 0
        logical :: given = .false.
    end type option_t

    !> The options of one program: declared with `add`, then read by `parse`, then asked by `get`.
    type, public :: options_t
        private
        character(:), allocatable :: program, summary
        type(option_t), allocatable :: list(:)
        logical, public :: help_wanted = .false., version_wanted = .false., list_wanted = .false.
    contains
        procedure :: start
        procedure :: add
        procedure :: parse
        procedure :: replace
        procedure :: ladder
        procedure :: given
        procedure :: print_help
        procedure :: print_list
        procedure :: write_values
        procedure, private :: get_integer, get_text, get_logical
        generic :: get => get_integer, get_text, get_logical
        procedure, private :: find, declared, set, show_values
    end type options_t

    character(*), parameter :: kind_name(5) = ['flag  ', 'count ', 'bytes ', 'choice', 'text  ']

contains

    !> Begin the options of `program`; `summary` is the one line that --help opens with.
    subroutine start(self, program, summary)
        class(options_t), intent(inout) :: self
        character(*), intent(in) :: program, summary

        self%program = program
        self%summary = summary
        allocate (self%list(0))
        call self%add('list-options', option_flag, '', 'print these options as JSON and end')
        call self%add('help', option_flag, '', 'print this help and end')
        call self%add('version', option_flag, '', 'print version, compilers, flags and configuration and end')
    end subroutine start

    !> Declare an option. `choices` (for option_choice): the words, separated by '|'; `lowest`: the least value;
    !> `ladder`: the values of a sweep, separated by ',' (for option_choice they are the choices).
    subroutine add(self, name, kind, default, help, choices, lowest, ladder)
        class(options_t), intent(inout) :: self
        character(*), intent(in) :: name, default, help
        integer, intent(in) :: kind
        character(*), intent(in), optional :: choices, ladder
        integer(i8), intent(in), optional :: lowest
        type(option_t) :: new

        new%name = name
        new%kind = kind
        new%default = default
        new%value = default
        new%help = help
        new%choices = ''
        new%ladder = ''
        if (present(ladder)) new%ladder = ladder
        if (present(choices)) new%choices = choices
        if (present(lowest)) new%lowest = lowest
        self%list = [self%list, new]
    end subroutine add

    !> Read the program's command line. Unknown options, missing or ill-formed values: exit_usage.
    subroutine parse(self, error)
        class(options_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word, value
        integer :: i, at, equals

        i = 1
        do while (i <= command_argument_count())
            word = argument(i)
            i = i + 1
            equals = index(word, '=')
            if (equals == 0) equals = len(word) + 1
            if (len(word) < 3 .or. index(word, '--') /= 1) then
                call usage(self, error, "'"//word//"' is not an option")
                return
            end if
            at = self%find(word(3:equals - 1))
            if (at == 0) then
                call usage(self, error, "there is no option '"//word(:equals - 1)//"'")
                return
            end if
            value = ''
            if (self%list(at)%kind == option_flag) then
                if (equals <= len(word)) then
                    call usage(self, error, "'"//word(:equals - 1)//"' takes no value")
                    return
                end if
            else if (equals <= len(word)) then
                value = word(equals + 1:)
            else if (i <= command_argument_count()) then
                value = argument(i)
                i = i + 1
            else
                call usage(self, error, "'"//word//"' needs a value")
                return
            end if
            call self%set(at, value, error)
            if (error%failed()) return
        end do
        self%help_wanted = self%given('help')
        self%version_wanted = self%given('version')
        self%list_wanted = self%given('list-options')
    end subroutine parse

    !> Check and keep a value.
    subroutine set(self, at, value, error)
        class(options_t), intent(inout) :: self
        integer, intent(in) :: at
        character(*), intent(in) :: value
        type(error_t), intent(inout) :: error
        integer(i8) :: number
        integer :: status
        logical :: ok

        associate (option => self%list(at))
            select case (option%kind)
            case (option_count)
                status = 1
                if (len(value) > 0 .and. verify(value, '0123456789') == 0) read (value, *, iostat=status) number
                ok = status == 0
                if (ok) ok = number >= option%lowest
                if (.not. ok) call usage(self, error, '--'//option%name//" takes a whole number of at least "// &
                                         to_text(option%lowest)//", not '"//value//"'")
            case (option_bytes)
                call text_to_bytes(value, number, ok)
                if (ok) ok = number >= option%lowest
                if (.not. ok) call usage(self, error, '--'//option%name//' takes a size of at least '// &
                                         bytes_to_text(option%lowest)//" such as 4096, 64KiB or 1.5GB, not '"//value//"'")
            case (option_choice)
                ok = len(value) > 0 .and. index(value, '|') == 0 .and. index('|'//option%choices//'|', '|'//value//'|') > 0
                if (.not. ok) call usage(self, error, '--'//option%name//' takes one of '//option%choices//", not '"//value//"'")
            end select
            option%value = value
            option%given = .true.
        end associate
    end subroutine set

    !> Give an option another value, as the command line would. Unknown option, ill-formed value: exit_usage.
    subroutine replace(self, name, value, error)
        class(options_t), intent(inout) :: self
        character(*), intent(in) :: name, value
        type(error_t), intent(inout) :: error
        integer :: at

        at = self%find(name)
        if (at == 0) then
            call usage(self, error, "there is no option '--"//name//"'")
            return
        end if
        call self%set(at, value, error)
    end subroutine replace

    !> The values of a sweep over an option, separated by ','; empty if it has none, or there is no such option.
    function ladder(self, name) result(values)
        class(options_t), intent(in) :: self
        character(*), intent(in) :: name
        character(:), allocatable :: values
        integer :: at, i

        values = ''
        at = self%find(name)
        if (at == 0) return
        values = self%list(at)%ladder
        if (self%list(at)%kind /= option_choice) return
        values = self%list(at)%choices
        do i = 1, len(values)
            if (values(i:i) == '|') values(i:i) = ','
        end do
    end function ladder

    !> Whether the command line has the option.
    logical function given(self, name)
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
        logical :: ok

        associate (option => self%list(self%declared(name)))
            if (option%kind == option_bytes) then
                call text_to_bytes(option%value, value, ok)
            else
                read (option%value, *) value
            end if
        end associate
    end subroutine get_integer

    !> The value of any option, as it was given.
    subroutine get_text(self, name, value)
        class(options_t), intent(in) :: self
        character(*), intent(in) :: name
        character(:), allocatable, intent(out) :: value

        value = self%list(self%declared(name))%value
    end subroutine get_text

    !> Whether a flag was given.
    subroutine get_logical(self, name, value)
        class(options_t), intent(in) :: self
        character(*), intent(in) :: name
        logical, intent(out) :: value

        value = self%list(self%declared(name))%given
    end subroutine get_logical

    !> The help text, on standard output.
    subroutine print_help(self)
        class(options_t), intent(in) :: self

        write (output_unit, '(a)') self%program//': '//self%summary, '', 'Usage: '//self%program//' [OPTION]...', ''
        call self%show_values()
        write (output_unit, '(a)') '', 'Exit status: 0 ran and the result is right; 1 the result failed its check;', &
            '2 wrong usage; 3 the page policy could not be had; 4 the system refused something else.'
    end subroutine print_help

    subroutine show_values(self)
        class(options_t), intent(in) :: self
        character(26) :: left
        character(:), allocatable :: note
        integer :: i

        do i = 1, size(self%list)
            associate (option => self%list(i))
                left = '--'//option%name
                if (option%kind == option_choice) then
                    note = ': '//option%choices
                else if (option%kind == option_flag) then
                    note = ''
                else
                    note = ' ('//trim(kind_name(option%kind))//')'
                end if
                if (len(option%default) > 0) note = note//' [default '//option%default//']'
                write (output_unit, '(2x,a)') left//option%help//note
            end associate
        end do
    end subroutine show_values

    !> The options as a JSON array on standard output, for programs that drive this one.
    subroutine print_list(self)
        class(options_t), intent(in) :: self
        type(json_t) :: json
        integer :: i

        call json%open_array('')
        do i = 1, size(self%list)
            associate (option => self%list(i))
                call json%open_object('')
                call json%put('name', option%name)
                call json%put('kind', trim(kind_name(option%kind)))
                if (option%kind == option_choice) call json%put('choices', option%choices)
                if (len(option%ladder) > 0) call json%put('ladder', option%ladder)
                if (option%kind /= option_flag) call json%put('default', option%default)
                call json%put('help', option%help)
                call json%close_object()
            end associate
        end do
        call json%close_array()
        write (output_unit, '(a)') json%text()
    end subroutine print_list

    !> The effective values as members of the JSON object that is open in `json`; `-` becomes `_` in names.
    !> Options that only say what to print are left out.
    subroutine write_values(self, json)
        class(options_t), intent(in) :: self
        type(json_t), intent(inout) :: json
        integer(i8) :: number
        integer :: i

        do i = 1, size(self%list)
            associate (option => self%list(i))
                select case (option%name)
                case ('help', 'version', 'list-options', 'record')
                    cycle
                end select
                select case (option%kind)
                case (option_flag)
                    call json%put(member(option%name), option%given)
                case (option_count)
                    call self%get(option%name, number)
                    call json%put(member(option%name), number)
                case (option_bytes)
                    call self%get(option%name, number)
                    call json%put(member(option%name)//'_bytes', number)
                case default
                    call json%put(member(option%name), option%value)
                end select
            end associate
        end do
    end subroutine write_values

    pure function member(name)
        character(*), intent(in) :: name
        character(len(name)) :: member
        integer :: i

        member = name
        do i = 1, len(name)
            if (name(i:i) == '-') member(i:i) = '_'
        end do
    end function member

    !> Place of an option in the list, 0 if it was not declared.
    pure integer function find(self, name) result(at)
        class(options_t), intent(in) :: self
        character(*), intent(in) :: name

        do at = size(self%list), 1, -1
            if (self%list(at)%name == name) return
        end do
        at = 0
    end function find

    !> Place of an option that the program must have declared: asking for another is a fault of the program.
    integer function declared(self, name) result(at)
        class(options_t), intent(in) :: self
        character(*), intent(in) :: name

        at = self%find(name)
        if (at == 0) error stop 'pw_options: the program asks for an option which it did not declare: '//name
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
