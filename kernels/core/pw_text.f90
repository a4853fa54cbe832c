!> Numbers and C strings as text.
module pw_text
    use, intrinsic :: ieee_arithmetic, only: ieee_is_finite
    use, intrinsic :: iso_c_binding, only: c_char, c_null_char
    use pw_kinds, only: i4, i8, r8
    implicit none
    private

    ! Powers of 1024, and of 1000, from the first on.
    character(3), parameter :: binary_units(4) = ['KiB', 'MiB', 'GiB', 'TiB'], decimal_units(4) = ['kB ', 'MB ', 'GB ', 'TB ']

    public :: to_text, bytes_to_text, text_to_bytes, text_to_real, from_c, shown

    !> Shortest exact decimal text of an integer; a real in the given format.
    interface to_text
        procedure :: integer4_to_text, integer8_to_text, real_to_text
    end interface to_text

contains

    pure function integer4_to_text(value) result(text)
        integer(i4), intent(in) :: value
        character(:), allocatable :: text

        text = integer8_to_text(int(value, i8))
    end function integer4_to_text

    pure function integer8_to_text(value) result(text)
        integer(i8), intent(in) :: value
        character(:), allocatable :: text
        character(24) :: buffer

        write (buffer, '(i0)') value
        text = trim(buffer)
    end function integer8_to_text

    !> `value` by the edit descriptor `format`, such as 'f0.3', without leading and trailing blanks.
    pure function real_to_text(value, format) result(text)
        real(r8), intent(in) :: value
        character(*), intent(in) :: format
        character(:), allocatable :: text
        character(40) :: buffer

        write (buffer, '('//format//')') value
        text = trim(adjustl(buffer))
        if (text(1:1) == '.') text = '0'//text
    end function real_to_text

    !> A size for people: the largest binary unit that leaves at least 1, such as '1.50 GiB'.
    pure function bytes_to_text(bytes) result(text)
        integer(i8), intent(in) :: bytes
        character(:), allocatable :: text
        integer :: i

        text = to_text(bytes)//' B'
        do i = 1, size(binary_units)
            if (bytes < 1024_i8**i) exit
            if (modulo(bytes, 1024_i8**i) == 0) then
                text = to_text(bytes/1024_i8**i)//' '//binary_units(i)
            else
                text = to_text(real(bytes, r8)/real(1024_i8**i, r8), 'f12.2')//' '//binary_units(i)
            end if
        end do
    end function bytes_to_text

    !> Bytes from text such as '4096', '64KiB', '1.5GiB', '256 MB' (kB, MB, GB are powers of 1000).
    !> `ok` is false, and `bytes` zero, for anything else, for negative sizes and for sizes above 2^62.
    pure subroutine text_to_bytes(text, bytes, ok)
        character(*), intent(in) :: text
        integer(i8), intent(out) :: bytes
        logical, intent(out) :: ok
        real(r8) :: number, scale
        integer :: split, i, status

        bytes = 0
        ok = .false.
        split = verify(text, '0123456789.')
        if (split == 1) return
        scale = 1.0_r8
        if (split > 0) then
            scale = merge(1.0_r8, 0.0_r8, adjustl(text(split:)) == 'B')
            do i = 1, size(binary_units)
                if (adjustl(text(split:)) == binary_units(i)) scale = 1024.0_r8**i
                if (adjustl(text(split:)) == decimal_units(i)) scale = 1000.0_r8**i
            end do
            if (scale <= 0.0_r8) return
        else
            split = len_trim(text) + 1
        end if
        read (text(:split - 1), *, iostat=status) number
        if (status /= 0) return
        if (number*scale > 2.0_r8**62) return
        bytes = nint(number*scale, i8)
        ok = .true.
    end subroutine text_to_bytes

    !> A finite number from text such as '2', '-0.5', '.5', '1e-3' (d for e too). `ok` is false, and `value` zero, for anything
    !> else: list-directed reading alone would take '3/' or '2*1'.
    pure subroutine text_to_real(text, value, ok)
        character(*), intent(in) :: text
        real(r8), intent(out) :: value
        logical, intent(out) :: ok
        character(*), parameter :: digits = '0123456789'
        real(r8) :: number
        integer :: first, split, point, status

        value = 0.0_r8
        ok = .false.
        first = 1
        if (scan(text, '+-') == 1) first = 2
        split = scan(text, 'eEdD')
        if (split > 0) then
            point = split + 1
            if (scan(text(point:), '+-') == 1) point = point + 1
            if (point > len(text) .or. verify(text(point:), digits) /= 0) return
        else
            split = len(text) + 1
        end if
        if (verify(text(first:split - 1), digits//'.') /= 0 .or. scan(text(first:split - 1), digits) == 0) return
        point = index(text(first:split - 1), '.')
        if (point > 0) then
            if (index(text(first + point:split - 1), '.') > 0) return
        end if
        read (text, *, iostat=status) number
        if (status /= 0) return
        if (.not. ieee_is_finite(number)) return
        value = number
        ok = .true.
    end subroutine text_to_real

    !> A word of a command line for a message: truncated if long, '?' for unprintable characters.
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

    !> Fortran text of a C string: everything before the first null character.
    pure function from_c(buffer) result(text)
        character(kind=c_char), intent(in) :: buffer(:)
        character(:), allocatable :: text
        integer :: i, length

        do length = 0, size(buffer) - 1
            if (buffer(length + 1) == c_null_char) exit
        end do
        allocate (character(length) :: text)
        do i = 1, length
            text(i:i) = buffer(i)
        end do
    end function from_c

end module pw_text
