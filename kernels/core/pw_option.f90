!> One option of a program: its declaration, the check of its values, and how it is shown.
module pw_option
    use pw_json, only: json_t
    use pw_kinds, only: i8, r8
    use pw_text, only: bytes_to_text, shown, text_to_bytes, text_to_real, to_text
    implicit none
    private

    public :: replaced

    integer, parameter, public :: option_flag = 1     !< given or not
    integer, parameter, public :: option_count = 2    !< a whole number, at least `lowest`
    integer, parameter, public :: option_bytes = 3    !< a size such as 256MiB
    integer, parameter, public :: option_choice = 4   !< one of a list of words
    integer, parameter, public :: option_text = 5     !< any text
    integer, parameter, public :: option_real = 6     !< a finite number, within its bounds if any
    character(*), parameter :: kind_name(6) = ['flag  ', 'count ', 'bytes ', 'choice', 'text  ', 'real  ']

    real(r8), parameter :: unbounded = huge(1.0_r8)

    !> Which values an option takes: the lowest count or size; for a real, its bounds and a bound that it exceeds.
    type, public :: rules_t
        integer(i8) :: lowest = 0
        real(r8) :: least = -unbounded, above = -unbounded, most = unbounded
    end type rules_t

    !> An option: how it was declared, and its value.
    type, extends(rules_t), public :: option_t
        character(:), allocatable :: name, value, default, help, choices, ladder
        integer :: kind = option_text
        logical :: given = .false.        ! the value is not a default
    contains
        procedure :: set_ladder
        procedure :: fault
        procedure :: kept
        procedure :: help_line
        procedure :: write_declaration
        procedure :: write_value
        procedure :: get_integer
    end type option_t

contains

    !> Keep those steps of a ladder that are at least `lowest`: a cache line may be longer than the first steps.
    pure subroutine set_ladder(self, ladder)
        class(option_t), intent(inout) :: self
        character(*), intent(in) :: ladder
        character(:), allocatable :: steps
        integer(i8) :: bytes
        integer :: first, last
        logical :: ok

        steps = ''
        first = 1
        do while (first <= len(ladder))
            last = first + index(ladder(first:)//',', ',') - 2
            call text_to_bytes(ladder(first:last), bytes, ok)
            if (.not. ok .or. bytes >= self%lowest) steps = steps//','//ladder(first:last)
            first = last + 2
        end do
        self%ladder = steps(min(2, len(steps) + 1):)
    end subroutine set_ladder

    !> Why an option cannot take this value; empty if it can.
    pure function fault(self, value) result(text)
        class(option_t), intent(in) :: self
        character(*), intent(in) :: value
        character(:), allocatable :: text
        integer(i8) :: number
        real(r8) :: x
        integer :: status
        logical :: ok

        ok = .true.
        select case (self%kind)
        case (option_flag)
            ok = value == 'true' .or. value == 'false'
            text = 'true or false'
        case (option_count)
            status = 1
            if (len(value) > 0 .and. verify(value, '0123456789') == 0) read (value, *, iostat=status) number
            ok = status == 0
            if (ok) ok = number >= self%lowest
            text = 'a whole number of at least '//to_text(self%lowest)
        case (option_bytes)
            call text_to_bytes(value, number, ok)
            ok = ok .and. number >= self%lowest
            text = 'a size of at least '//bytes_to_text(self%lowest)//' such as 4096, 64KiB or 1.5GB'
        case (option_choice)
            ok = is_choice(self, lowered(value))
            text = 'one of '//self%choices
        case (option_real)
            call text_to_real(value, x, ok)
            ok = ok .and. x >= self%least .and. x > self%above .and. x <= self%most
            text = 'a number'//bounds_of(self)
        end select
        if (ok) then
            text = ''
        else
            text = ' takes '//text//", not '"//shown(value)//"'"
        end if
    end function fault

    pure logical function is_choice(option, value)
        class(option_t), intent(in) :: option
        character(*), intent(in) :: value

        is_choice = len(value) > 0 .and. index(value, '|') == 0 .and. index('|'//option%choices//'|', '|'//value//'|') > 0
    end function is_choice

    !> The value as the option keeps it: choices are in lower case, and may be given in capitals (--pages hugetlbfs:2M).
    pure function kept(self, value) result(text)
        class(option_t), intent(in) :: self
        character(*), intent(in) :: value
        character(:), allocatable :: text

        text = value
        if (self%kind == option_choice) text = lowered(value)
    end function kept

    pure function lowered(value) result(text)
        character(*), intent(in) :: value
        character(len(value)) :: text
        character(*), parameter :: small = 'abcdefghijklmnopqrstuvwxyz', capital = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
        integer :: i, letter

        text = value
        do i = 1, len(value)
            letter = index(capital, value(i:i))
            if (letter > 0) text(i:i) = small(letter:letter)
        end do
    end function lowered

    !> The bounds of a real in words, with a leading blank; empty without bounds.
    pure function bounds_of(option) result(text)
        type(option_t), intent(in) :: option
        character(:), allocatable :: text

        text = ''
        if (option%least > -unbounded) text = ' of at least '//brief(option%least)
        if (option%above > -unbounded) text = ' above '//brief(option%above)
        if (option%most < unbounded .and. len(text) > 0) text = text//' and'
        if (option%most < unbounded) text = text//' at most '//brief(option%most)
    end function bounds_of

    !> A bound as people write it: 1, 0.5.
    pure function brief(x) result(text)
        real(r8), intent(in) :: x
        character(:), allocatable :: text

        text = to_text(x, 'g0.6')
        if (abs(x) < 1.0e6_r8 .and. abs(x - anint(x)) <= 0.0_r8) text = to_text(nint(x))
    end function brief

    !> The option's line of --help.
    pure function help_line(self) result(text)
        class(option_t), intent(in) :: self
        character(:), allocatable :: text
        character(26) :: left

        left = '--'//self%name
        text = left//self%help
        select case (self%kind)
        case (option_choice)
            text = text//': '//self%choices
        case (option_flag)
        case default
            text = text//' ('//trim(kind_name(self%kind))//bounds_of(self)//')'
        end select
        if (len(self%default) > 0) text = text//' [default '//self%default//']'
    end function help_line

    !> The declaration as a JSON object.
    subroutine write_declaration(self, json)
        class(option_t), intent(in) :: self
        type(json_t), intent(inout) :: json

        call json%open_object('')
        call json%put('name', self%name)
        call json%put('kind', trim(kind_name(self%kind)))
        if (self%kind == option_choice) call json%put('choices', self%choices)
        if (self%least > -unbounded) call json%put('least', self%least)
        if (self%above > -unbounded) call json%put('above', self%above)
        if (self%most < unbounded) call json%put('most', self%most)
        if (len(self%ladder) > 0) call json%put('ladder', self%ladder)
        if (self%kind /= option_flag) call json%put('default', self%default)
        call json%put('help', self%help)
        call json%close_object()
    end subroutine write_declaration

    !> The value as a member of the JSON object that is open in `json`; `-` becomes `_` in its name.
    subroutine write_value(self, json)
        class(option_t), intent(in) :: self
        type(json_t), intent(inout) :: json
        character(:), allocatable :: name
        real(r8) :: x
        logical :: ok

        name = replaced(self%name, '-', '_')
        select case (self%kind)
        case (option_flag)
            call json%put(name, self%value == 'true')
        case (option_real)
            call text_to_real(self%value, x, ok)
            call json%put(name, x)
        case (option_count)
            call json%put(name, self%get_integer())
        case (option_bytes)
            call json%put(name//'_bytes', self%get_integer())
        case default
            call json%put(name, self%value)
        end select
    end subroutine write_value

    !> The value of a count or, in bytes, of a size.
    pure integer(i8) function get_integer(self) result(number)
        class(option_t), intent(in) :: self
        logical :: ok

        if (self%kind == option_bytes) then
            call text_to_bytes(self%value, number, ok)
        else
            read (self%value, *) number
        end if
    end function get_integer

    !> `text` with another character for each `old`.
    pure function replaced(text, old, new) result(changed)
        character(*), intent(in) :: text
        character, intent(in) :: old, new
        character(len(text)) :: changed
        integer :: i

        changed = text
        do i = 1, len(text)
            if (text(i:i) == old) changed(i:i) = new
        end do
    end function replaced

end module pw_option
