!> A writer of one JSON text (RFC 8259) on a single line.
module pw_json
    use, intrinsic :: ieee_arithmetic, only: ieee_is_finite
    use pw_kinds, only: i4, i8, r8
    use pw_text, only: to_text
    implicit none
    private

    !> Builds the text from the outside in: `open_object`, `put`, `close_object`. Pass a name inside
    !> objects, and an empty one inside arrays and for the outermost value.
    type, public :: json_t
        private
        character(:), allocatable :: buffer
        integer :: length = 0
        logical :: needs_comma = .false.
    contains
        procedure :: open_object
        procedure :: close_object
        procedure :: open_array
        procedure :: close_array
        procedure :: text => written_text
        procedure, private :: put_text, put_integer4, put_integer8, put_real, put_logical
        procedure, private :: put_integer4s, put_reals
        generic :: put => put_text, put_integer4, put_integer8, put_real, put_logical, put_integer4s, put_reals
        procedure, private :: write_raw, write_value
    end type json_t

contains

    subroutine open_object(self, name)
        class(json_t), intent(inout) :: self
        character(*), intent(in) :: name

        call self%write_value(name, '{')
        self%needs_comma = .false.
    end subroutine open_object

    subroutine close_object(self)
        class(json_t), intent(inout) :: self

        call self%write_raw('}')
        self%needs_comma = .true.
    end subroutine close_object

    subroutine open_array(self, name)
        class(json_t), intent(inout) :: self
        character(*), intent(in) :: name

        call self%write_value(name, '[')
        self%needs_comma = .false.
    end subroutine open_array

    subroutine close_array(self)
        class(json_t), intent(inout) :: self

        call self%write_raw(']')
        self%needs_comma = .true.
    end subroutine close_array

    !> Everything written so far.
    pure function written_text(self) result(text)
        class(json_t), intent(in) :: self
        character(:), allocatable :: text

        text = ''
        if (self%length > 0) text = self%buffer(:self%length)
    end function written_text

    subroutine put_text(self, name, value)
        class(json_t), intent(inout) :: self
        character(*), intent(in) :: name, value

        call self%write_value(name, quoted(value))
    end subroutine put_text

    subroutine put_integer4(self, name, value)
        class(json_t), intent(inout) :: self
        character(*), intent(in) :: name
        integer(i4), intent(in) :: value

        call self%write_value(name, to_text(value))
    end subroutine put_integer4

    subroutine put_integer8(self, name, value)
        class(json_t), intent(inout) :: self
        character(*), intent(in) :: name
        integer(i8), intent(in) :: value

        call self%write_value(name, to_text(value))
    end subroutine put_integer8

    subroutine put_real(self, name, value)
        class(json_t), intent(inout) :: self
        character(*), intent(in) :: name
        real(r8), intent(in) :: value

        call self%write_value(name, real_literal(value))
    end subroutine put_real

    subroutine put_logical(self, name, value)
        class(json_t), intent(inout) :: self
        character(*), intent(in) :: name
        logical, intent(in) :: value

        call self%write_value(name, trim(merge('true ', 'false', value)))
    end subroutine put_logical

    subroutine put_integer4s(self, name, values)
        class(json_t), intent(inout) :: self
        character(*), intent(in) :: name
        integer(i4), intent(in) :: values(:)
        integer :: i

        call self%open_array(name)
        do i = 1, size(values)
            call self%put('', values(i))
        end do
        call self%close_array()
    end subroutine put_integer4s

    subroutine put_reals(self, name, values)
        class(json_t), intent(inout) :: self
        character(*), intent(in) :: name
        real(r8), intent(in) :: values(:)
        integer :: i

        call self%open_array(name)
        do i = 1, size(values)
            call self%put('', values(i))
        end do
        call self%close_array()
    end subroutine put_reals

    subroutine write_value(self, name, literal)
        class(json_t), intent(inout) :: self
        character(*), intent(in) :: name, literal

        if (self%needs_comma) call self%write_raw(',')
        if (len(name) > 0) call self%write_raw(quoted(name)//':')
        call self%write_raw(literal)
        self%needs_comma = .true.
    end subroutine write_value

    !> Append, doubling the buffer as needed so that long records stay linear in time.
    subroutine write_raw(self, text)
        class(json_t), intent(inout) :: self
        character(*), intent(in) :: text
        character(:), allocatable :: larger

        if (.not. allocated(self%buffer)) allocate (character(1024) :: self%buffer)
        if (self%length + len(text) > len(self%buffer)) then
            allocate (character(2*(self%length + len(text))) :: larger)
            larger(:self%length) = self%buffer(:self%length)
            call move_alloc(larger, self%buffer)
        end if
        self%buffer(self%length + 1:self%length + len(text)) = text
        self%length = self%length + len(text)
    end subroutine write_raw

    !> JSON has neither infinity nor NaN: both become null, which no schema of this project accepts as a number.
    pure function real_literal(value) result(literal)
        real(r8), intent(in) :: value
        character(:), allocatable :: literal

        if (ieee_is_finite(value)) then
            literal = to_text(value, 'es24.16e3')
        else
            literal = 'null'
        end if
    end function real_literal

    pure function quoted(value) result(text)
        character(*), intent(in) :: value
        character(:), allocatable :: text
        character(2) :: code
        integer :: i

        text = '"'
        do i = 1, len(value)
            select case (iachar(value(i:i)))
            case (34, 92)
                text = text//achar(92)//value(i:i)
            case (0:31)
                write (code, '(z2.2)') iachar(value(i:i))
                text = text//achar(92)//'u00'//code
            case default
                text = text//value(i:i)
            end select
        end do
        text = text//'"'
    end function quoted

end module pw_json
