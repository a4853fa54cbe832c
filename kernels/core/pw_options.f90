!> GNU-style long options: `--name value` or `--name=value`, flags without a value; and parameter files that set options.
!>
!> A parameter file has lines `name = value`, where name is an option's name without the dashes. `#` begins a comment. Text
!> may be quoted; it must be if it contains a `#` or begins or ends with blanks. A flag is true or false. The command line
!> overrides the file, whichever is read first.
module pw_options
    use, intrinsic :: iso_fortran_env, only: iostat_end, iostat_eor, output_unit
    use pw_error, only: error_t, exit_usage
    use pw_json, only: json_t
    use pw_kinds, only: i8, r8
    use pw_text, only: bytes_to_text, text_to_bytes, text_to_real, to_text
    implicit none
    private

    integer, parameter, public :: option_flag = 1     !< given or not
    integer, parameter, public :: option_count = 2    !< a whole number, at least `lowest`
    integer, parameter, public :: option_bytes = 3    !< a size such as 256MiB
    integer, parameter, public :: option_choice = 4   !< one of a list of words
    integer, parameter, public :: option_text = 5     !< any text
    integer, parameter, public :: option_real = 6     !< a finite number, within its bounds if any

    ! Source of a value.
    integer, parameter :: from_default = 0, from_earlier_run = 1, from_file = 2, from_command_line = 3

    type :: option_t
        character(:), allocatable :: name, value, default, help, choices, ladder
        integer :: kind = option_text
        integer(i8) :: lowest = 0
        real(r8), allocatable :: least, above, most
        logical :: in_file = .true.       ! whether a parameter file may set it
        integer :: source = from_default
        integer :: line = 0               ! of the parameter file that is being read
    end type option_t

    !> Faults of a parameter file.
    type :: faults_t
        character(:), allocatable :: path, text
        integer :: count = 0
    contains
        procedure :: note
    end type faults_t
    integer, parameter :: most_faults = 50   ! reported per file: a file of another kind has a fault in each line

    !> The options of one program: declared with `add`, then read by `parse` and `read_file`, then queried by `get`.
    type, public :: options_t
        private
        character(:), allocatable :: program, summary
        type(option_t), allocatable :: list(:)
        logical, public :: help_wanted = .false., version_wanted = .false., list_wanted = .false.
    contains
        procedure :: start
        procedure :: add
        procedure :: parse
        procedure :: read_file
        procedure :: replace
        procedure :: set_default
        procedure :: inherit
        procedure :: ladder
        procedure :: given
        procedure :: print_help
        procedure :: print_list
        procedure :: write_values
        procedure :: name_of
        procedure, private :: get_integer, get_real, get_text, get_logical
        generic :: get => get_integer, get_real, get_text, get_logical
        procedure, private :: find, declared, set, read_line, names_like, show_values
    end type options_t

    character(*), parameter :: kind_name(6) = ['flag  ', 'count ', 'bytes ', 'choice', 'text  ', 'real  ']

contains

    !> Begin the options of `program`; `summary` is the first line of --help.
    subroutine start(self, program, summary)
        class(options_t), intent(inout) :: self
        character(*), intent(in) :: program, summary

        self%program = program
        self%summary = summary
        allocate (self%list(0))
        call self%add('list-options', option_flag, '', 'print these options as JSON and exit', in_file=.false.)
        call self%add('help', option_flag, '', 'print this help and exit', in_file=.false.)
        call self%add('version', option_flag, '', 'print version, compilers, flags and configuration and exit', in_file=.false.)
    end subroutine start

    !> Declare an option. `choices` (for option_choice): the words, separated by '|'; `lowest`: the least count or size;
    !> `least`, `most`: bounds of a real, `above`: a bound that it must exceed; `ladder`: the values of a sweep, separated
    !> by ',', those below `lowest` left out (for option_choice they are the choices); `in_file` false: not allowed in a
    !> parameter file. A count, size or real whose default is empty has no value until it is given or `set_default` is
    !> called.
    subroutine add(self, name, kind, default, help, choices, lowest, ladder, least, above, most, in_file)
        class(options_t), intent(inout) :: self
        character(*), intent(in) :: name, default, help
        integer, intent(in) :: kind
        character(*), intent(in), optional :: choices, ladder
        integer(i8), intent(in), optional :: lowest
        real(r8), intent(in), optional :: least, above, most
        logical, intent(in), optional :: in_file
        type(option_t) :: new

        new%name = name
        new%kind = kind
        new%default = default
        new%value = default
        new%help = help
        new%choices = ''
        new%ladder = ''
        if (present(choices)) new%choices = choices
        if (present(lowest)) new%lowest = lowest
        if (present(ladder)) new%ladder = allowed(ladder, new%lowest)
        if (present(least)) new%least = least
        if (present(above)) new%above = above
        if (present(most)) new%most = most
        if (present(in_file)) new%in_file = in_file
        self%list = [self%list, new]
    end subroutine add

    !> Those steps of a ladder that are at least `lowest`: a cache line may be longer than the first steps.
    pure function allowed(ladder, lowest) result(steps)
        character(*), intent(in) :: ladder
        integer(i8), intent(in) :: lowest
        character(:), allocatable :: steps
        integer(i8) :: bytes
        integer :: first, length
        logical :: ok

        steps = ''
        first = 1
        do while (first <= len(ladder))
            length = index(ladder(first:)//',', ',') - 1
            call text_to_bytes(ladder(first:first + length - 1), bytes, ok)
            if (.not. ok .or. bytes >= lowest) steps = steps//','//ladder(first:first + length - 1)
            first = first + length + 1
        end do
        steps = steps(min(2, len(steps) + 1):)
    end function allowed

    !> Read the program's command line. Unknown options, missing or malformed values: exit_usage.
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
                call usage(self, error, "'"//word//"' is not an option: options start with --")
                return
            end if
            at = self%find(word(3:equals - 1))
            if (at == 0) then
                call usage(self, error, "unknown option '"//word(:equals - 1)//"'")
                return
            end if
            value = ''
            if (equals <= len(word)) then
                value = word(equals + 1:)
            else if (self%list(at)%kind == option_flag) then
                value = 'true'
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

    !> Check and store a value from the command line.
    subroutine set(self, at, value, error)
        class(options_t), intent(inout) :: self
        integer, intent(in) :: at
        character(*), intent(in) :: value
        type(error_t), intent(inout) :: error
        character(:), allocatable :: fault

        associate (option => self%list(at))
            fault = fault_of(option, value)
            if (len(fault) > 0 .and. option%kind == option_flag) then
                call usage(self, error, "'--"//option%name//"' takes no value but true or false, not '"//value//"'")
            else if (len(fault) > 0) then
                call usage(self, error, '--'//option%name//fault)
            end if
            if (error%failed()) return
            option%value = value
            option%source = from_command_line
        end associate
    end subroutine set

    !> Why an option cannot take this value; empty if it can.
    pure function fault_of(option, value) result(fault)
        type(option_t), intent(in) :: option
        character(*), intent(in) :: value
        character(:), allocatable :: fault
        integer(i8) :: number
        real(r8) :: x
        integer :: status
        logical :: ok

        ok = .true.
        select case (option%kind)
        case (option_flag)
            ok = value == 'true' .or. value == 'false'
            fault = ' takes true or false'
        case (option_count)
            status = 1
            if (len(value) > 0 .and. verify(value, '0123456789') == 0) read (value, *, iostat=status) number
            ok = status == 0
            if (ok) ok = number >= option%lowest
            fault = ' takes a whole number of at least '//to_text(option%lowest)
        case (option_bytes)
            call text_to_bytes(value, number, ok)
            if (ok) ok = number >= option%lowest
            fault = ' takes a size of at least '//bytes_to_text(option%lowest)//' such as 4096, 64KiB or 1.5GB'
        case (option_choice)
            ok = len(value) > 0 .and. index(value, '|') == 0 .and. index('|'//option%choices//'|', '|'//value//'|') > 0
            fault = ' takes one of '//option%choices
        case (option_real)
            call text_to_real(value, x, ok)
            if (ok .and. allocated(option%least)) ok = x >= option%least
            if (ok .and. allocated(option%above)) ok = x > option%above
            if (ok .and. allocated(option%most)) ok = x <= option%most
            fault = ' takes a number'//bounds_of(option)
        end select
        if (ok) then
            fault = ''
        else
            fault = fault//", not '"//shown(value)//"'"
        end if
    end function fault_of

    !> The bounds of a real in words, with a leading blank; empty without bounds.
    pure function bounds_of(option) result(text)
        type(option_t), intent(in) :: option
        character(:), allocatable :: text

        text = ''
        if (allocated(option%least)) text = ' of at least '//brief(option%least)
        if (allocated(option%above)) text = ' above '//brief(option%above)
        if (allocated(option%most) .and. len(text) > 0) text = text//' and'
        if (allocated(option%most)) text = text//' at most '//brief(option%most)
    end function bounds_of

    !> A bound as people write it: 1, 0.5.
    pure function brief(x) result(text)
        real(r8), intent(in) :: x
        character(:), allocatable :: text

        if (abs(x) < 1.0e6_r8 .and. abs(x - anint(x)) <= 0.0_r8) then
            text = to_text(nint(x))
        else
            text = to_text(x, 'g0.6')
        end if
    end function brief

    !> Read a parameter file. Unknown or repeated keys, bad values and lines of another form: exit_usage, with one line per
    !> fault in the message. exit_usage too if the file cannot be read.
    subroutine read_file(self, path, error)
        class(options_t), intent(inout) :: self
        character(*), intent(in) :: path
        type(error_t), intent(inout) :: error
        character(:), allocatable :: line
        character(256) :: reason
        type(faults_t) :: faults
        integer :: unit, status, number, i
        logical :: folder

        faults%path = path
        faults%text = ''
        do i = 1, size(self%list)
            self%list(i)%line = 0
        end do
        reason = ''
        open (newunit=unit, file=path, status='old', action='read', iostat=status, iomsg=reason)
        ! flang-22 reads a folder as an empty file.
        inquire (file=path//'/.', exist=folder)
        if (status == 0 .and. folder) then
            close (unit)
            status = 1
            reason = 'it is a folder'
        else if (status == 0) then
            number = 0
            do
                call next_line(unit, line, status, reason)
                if (status /= 0) exit
                number = number + 1
                call self%read_line(number, line, faults)
            end do
            close (unit)
            if (status == iostat_end) status = 0
        end if
        if (status /= 0) then
            call error%raise(exit_usage, "cannot read the parameter file '"//path//"': "//trim(reason), 'pw_options', &
                             'name a readable file')
        else if (faults%count > 0) then
            if (faults%count > most_faults) faults%text = faults%text//new_line('a')//'  and '// &
                to_text(faults%count - most_faults)//' more'
            call error%raise(exit_usage, to_text(faults%count)//" fault(s) in the parameter file '"//path//"':"//faults%text, &
                             'pw_options', self%program//' --help lists the options; write NAME = VALUE and # before comments')
        end if
    end subroutine read_file

    !> Store what a line of a parameter file sets, or note its fault.
    subroutine read_line(self, number, line, faults)
        class(options_t), intent(inout) :: self
        integer, intent(in) :: number
        character(*), intent(in) :: line
        type(faults_t), intent(inout) :: faults
        character(:), allocatable :: name, value, fault
        integer :: at

        call split_line(line, name, value, fault)
        if (len(fault) > 0) call faults%note(number, fault)
        if (len(fault) > 0 .or. len(name) == 0) return
        at = self%find(name)
        if (at == 0) then
            call faults%note(number, "unknown option '"//shown(name)//"'"//self%names_like(name))
            return
        end if
        associate (option => self%list(at))
            if (.not. option%in_file) then
                call faults%note(number, "'"//name//"' is allowed only on the command line")
            else if (option%line > 0) then
                call faults%note(number, "'"//name//"' is set again, after line "//to_text(option%line))
            else
                option%line = number
                fault = fault_of(option, value)
                if (len(fault) > 0) call faults%note(number, "'"//name//"'"//fault)
                if (len(fault) > 0 .or. option%source == from_command_line) return
                option%value = value
                option%source = from_file
            end if
        end associate
    end subroutine read_line

    !> Name and value in a line of a parameter file: empty if it holds neither; `fault` describes a malformed line.
    pure subroutine split_line(line, name, value, fault)
        character(*), intent(in) :: line
        character(:), allocatable, intent(out) :: name, value, fault
        character(:), allocatable :: rest
        integer :: equals, last

        name = ''
        value = ''
        fault = ''
        rest = trim(adjustl(line))
        if (len(rest) == 0) return
        if (rest(1:1) == '#') return
        equals = index(rest, '=')
        if (index(rest, '#') > 0) equals = min(equals, index(rest, '#') - 1)
        if (equals > 0) then
            if (rest(equals:equals) == '=') name = trim(rest(:equals - 1))
        end if
        if (len(name) == 0) then
            fault = "'"//shown(rest)//"' is not of the form NAME = VALUE"
            return
        end if
        rest = adjustl(rest(equals + 1:))
        if (rest(1:min(1, len(rest))) == '"' .or. rest(1:min(1, len(rest))) == "'") then
            last = index(rest(2:), rest(1:1)) + 1
            if (last == 1) then
                fault = "the value of '"//shown(name)//"' has no closing quotation mark"
                return
            end if
            value = rest(2:last - 1)
            rest = adjustl(rest(last + 1:))
            if (scan(rest(1:min(1, len(rest))), '# ') == 0 .and. len_trim(rest) > 0) &
                fault = "unexpected text after the value of '"//shown(name)//"': '"//shown(trim(rest))//"'"
        else
            if (index(rest, '#') > 0) rest = rest(:index(rest, '#') - 1)
            value = trim(rest)
            if (len(value) == 0) fault = "'"//shown(name)//"' has no value"
        end if
    end subroutine split_line

    subroutine note(self, line, fault)
        class(faults_t), intent(inout) :: self
        integer, intent(in) :: line
        character(*), intent(in) :: fault

        self%count = self%count + 1
        if (self%count > most_faults) return
        self%text = self%text//new_line('a')//'  '//self%path//':'//to_text(line)//': '//fault
    end subroutine note

    !> A word of a file or command line for a message: truncated if long, '?' for unprintable characters.
    pure function shown(word) result(text)
        character(*), intent(in) :: word
        character(:), allocatable :: text
        integer, parameter :: longest = 60
        integer :: i

        text = word
        if (len(word) > longest) text = word(:longest)//'...'
        do i = 1, len(text)
            if (iachar(text(i:i)) < 32 .or. iachar(text(i:i)) == 127) text(i:i) = '?'
        end do
    end function shown

    !> Next line of any length, tabs and carriage returns as blanks; `status` is iostat_end after the last.
    subroutine next_line(unit, line, status, reason)
        integer, intent(in) :: unit
        character(:), allocatable, intent(out) :: line
        integer, intent(out) :: status
        character(*), intent(inout) :: reason
        character(:), allocatable :: longer
        character(256) :: piece
        integer :: used, length, i

        ! Doubled, not concatenated: flang-22 keeps every concatenation in a loop on the stack.
        allocate (character(len(piece)) :: line)
        used = 0
        do
            read (unit, '(a)', advance='no', iostat=status, iomsg=reason, size=length) piece
            if (status /= 0 .and. status /= iostat_eor) exit
            if (used + length > len(line)) then
                allocate (character(2*(used + length)) :: longer)
                longer(:used) = line(:used)
                call move_alloc(longer, line)
            end if
            line(used + 1:used + length) = piece(:length)
            used = used + length
            if (status == iostat_eor) exit
        end do
        if (status == iostat_eor .or. (status == iostat_end .and. used > 0)) status = 0
        line = line(:used)
        do i = 1, used
            if (line(i:i) == achar(9) .or. line(i:i) == achar(13)) line(i:i) = ' '
        end do
    end subroutine next_line

    !> The names most similar to an unknown one, as the end of a sentence; empty if none is similar.
    function names_like(self, name) result(text)
        class(options_t), intent(in) :: self
        character(*), intent(in) :: name
        character(:), allocatable :: text
        integer, allocatable :: distance(:)
        integer :: i

        allocate (distance(size(self%list)))
        do i = 1, size(self%list)
            distance(i) = edits(name, self%list(i)%name)
            if (.not. self%list(i)%in_file) distance(i) = huge(1)
        end do
        text = ''
        if (minval(distance) > max(2, len(name)/3)) return
        do i = 1, size(self%list)
            if (distance(i) > minval(distance)) cycle
            if (len(text) > 0) text = text//', '
            text = text//"'"//self%list(i)%name//"'"
        end do
        text = '; did you mean '//text
    end function names_like

    !> Number of characters to insert, delete or replace to turn `a` into `b` (Levenshtein 1966; the table row by row).
    pure integer function edits(a, b)
        character(*), intent(in) :: a, b
        integer :: row(0:len(b)), diagonal, above, i, j

        row = [(j, j=0, len(b))]
        do i = 1, len(a)
            diagonal = row(0)
            row(0) = i
            do j = 1, len(b)
                above = row(j)
                row(j) = min(above + 1, row(j - 1) + 1, diagonal + merge(0, 1, a(i:i) == b(j:j)))
                diagonal = above
            end do
        end do
        edits = row(len(b))
    end function edits

    !> Change the default of an option that neither command line nor file set. Malformed value: exit_usage.
    subroutine set_default(self, name, value, error)
        class(options_t), intent(inout) :: self
        character(*), intent(in) :: name, value
        type(error_t), intent(inout) :: error
        character(:), allocatable :: fault
        integer :: at

        at = self%declared(name)
        associate (option => self%list(at))
            if (option%source /= from_default) return
            fault = fault_of(option, value)
            if (len(fault) > 0) call usage(self, error, '--'//name//fault)
            if (len(fault) == 0) option%value = value
        end associate
    end subroutine set_default

    !> Give an option the value that it had in the run that this one continues; file and command line override it.
    !> Unknown option, malformed value: exit_usage.
    subroutine inherit(self, name, value, error)
        class(options_t), intent(inout) :: self
        character(*), intent(in) :: name, value
        type(error_t), intent(inout) :: error
        character(:), allocatable :: fault
        integer :: at

        at = self%find(name)
        if (at == 0) then
            call usage(self, error, "the earlier run had an option '"//name//"' which this program has not")
            return
        end if
        associate (option => self%list(at))
            if (option%source /= from_default) return
            fault = fault_of(option, value)
            if (len(fault) > 0) then
                call usage(self, error, '--'//name//fault)
            else
                option%value = value
                option%source = from_earlier_run
            end if
        end associate
    end subroutine inherit

    !> Set an option as the command line would. Unknown option, malformed value: exit_usage.
    subroutine replace(self, name, value, error)
        class(options_t), intent(inout) :: self
        character(*), intent(in) :: name, value
        type(error_t), intent(inout) :: error
        integer :: at

        at = self%find(name)
        if (at == 0) then
            call usage(self, error, "unknown option '--"//name//"'")
            return
        end if
        call self%set(at, value, error)
    end subroutine replace

    !> The values of a sweep over an option, separated by ','; empty if it has none or does not exist.
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

    !> The name of option `i`, from 1; empty beyond the last.
    pure function name_of(self, i) result(name)
        class(options_t), intent(in) :: self
        integer, intent(in) :: i
        character(:), allocatable :: name

        name = ''
        if (i <= size(self%list)) name = self%list(i)%name
    end function name_of

    !> Whether the command line, a parameter file or an earlier run sets the option.
    pure logical function given(self, name)
        class(options_t), intent(in) :: self
        character(*), intent(in) :: name
        integer :: at

        at = self%find(name)
        given = .false.
        if (at > 0) given = self%list(at)%source /= from_default
    end function given

    !> The value of a count or, in bytes, of a size.
    subroutine get_integer(self, name, value)
        class(options_t), intent(in) :: self
        character(*), intent(in) :: name
        integer(i8), intent(out) :: value
        logical :: ok
        integer :: at

        at = self%declared(name)
        associate (option => self%list(at))
            if (option%kind == option_bytes) then
                call text_to_bytes(option%value, value, ok)
            else
                read (option%value, *) value
            end if
        end associate
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

        write (output_unit, '(a)') self%program//': '//self%summary, '', 'Usage: '//self%program//' [OPTION]...', ''
        call self%show_values()
        write (output_unit, '(a)') '', 'Exit status: 0 ran and the result is right; 1 the result failed its check;', &
            '2 wrong usage; 3 the page policy is unavailable; 4 the system refused something else.'
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
                    note = ' ('//trim(kind_name(option%kind))//bounds_of(option)//')'
                end if
                if (len(option%default) > 0) note = note//' [default '//option%default//']'
                write (output_unit, '(2x,a)') left//option%help//note
            end associate
        end do
    end subroutine show_values

    !> Print the options as a JSON array on standard output, for programs that run this one.
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
                if (allocated(option%least)) call json%put('least', option%least)
                if (allocated(option%above)) call json%put('above', option%above)
                if (allocated(option%most)) call json%put('most', option%most)
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
    !> Options that only select what to print are left out.
    subroutine write_values(self, json)
        class(options_t), intent(in) :: self
        type(json_t), intent(inout) :: json
        integer(i8) :: number
        real(r8) :: x
        integer :: i

        do i = 1, size(self%list)
            associate (option => self%list(i))
                select case (option%name)
                case ('help', 'version', 'list-options', 'record')
                    cycle
                end select
                select case (option%kind)
                case (option_flag)
                    call json%put(member(option%name), option%value == 'true')
                case (option_real)
                    call self%get(option%name, x)
                    call json%put(member(option%name), x)
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
