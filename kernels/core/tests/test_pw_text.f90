!> Sizes as text, both ways, and numbers from text.
program test_pw_text
    use pw_kinds, only: i8, r8
    use pw_text, only: bytes_to_text, text_to_bytes, text_to_real, to_text
    implicit none
    character(*), parameter :: sizes = '4096|0|64KiB|1.5GiB|256 MB|2kB|7B'
    integer(i8), parameter :: bytes(7) = [4096_i8, 0_i8, 65536_i8, 1610612736_i8, 256000000_i8, 2000_i8, 7_i8]
    character(*), parameter :: no_sizes = '|-1|12XiB|KiB|1.2.3MB|1e3|99999999999GiB'
    character(*), parameter :: reals = '2|-0.5|+.5|3.|1e-3|6.02D+23'
    real(r8), parameter :: values(6) = [2.0_r8, -0.5_r8, 0.5_r8, 3.0_r8, 1.0e-3_r8, 6.02e23_r8]
    character(*), parameter :: no_reals = '|.|e5|1e|1e+|1.2.3|1 2|2*1|3/|1,5|nan|inf|1e999|0x10|1e2.5'
    integer :: failures = 0, i

    do i = 1, size(bytes)
        call reads(word(sizes, i), bytes(i))
    end do
    do i = 1, 7
        call reads(word(no_sizes, i), -1_i8)
    end do
    do i = 1, size(values)
        call reads_real(word(reals, i), .true., values(i))
    end do
    do i = 1, 15
        call reads_real(word(no_reals, i), .false., 0.0_r8)
    end do
    ! Every unit that is printed is read.
    do i = 0, 5
        call reads(bytes_to_text(3*1024_i8**i), 3*1024_i8**i)
    end do
    call expect(bytes_to_text(4096_i8), '4 KiB')
    call expect(bytes_to_text(1610612736_i8), '1.50 GiB')
    call expect(bytes_to_text(1023_i8), '1023 B')
    call expect(to_text(-12_i8), '-12')
    call expect(to_text(0.25_r8, 'f0.2'), '0.25')
    if (failures > 0) error stop 'test_pw_text: failures'

contains

    !> Word i of a list.
    function word(list, i)
        character(*), intent(in) :: list
        integer, intent(in) :: i
        character(:), allocatable :: word
        integer :: k

        word = list//'|'
        do k = 2, i
            word = word(index(word, '|') + 1:)
        end do
        word = word(:index(word, '|') - 1)
    end function word

    !> The text is a size of so many bytes; below 0: none.
    subroutine reads(text, bytes)
        character(*), intent(in) :: text
        integer(i8), intent(in) :: bytes
        integer(i8) :: got
        logical :: ok

        call text_to_bytes(text, got, ok)
        if ((ok .eqv. bytes >= 0) .and. got == max(bytes, 0_i8)) return
        failures = failures + 1
        print *, text, ' reads as ', got, ok
    end subroutine reads

    !> The text is a number, and that value; or none.
    subroutine reads_real(text, is_number, value)
        character(*), intent(in) :: text
        logical, intent(in) :: is_number
        real(r8), intent(in) :: value
        real(r8) :: got
        logical :: ok

        call text_to_real(text, got, ok)
        if ((ok .eqv. is_number) .and. abs(got - value) <= 0.0_r8) return
        failures = failures + 1
        print *, text, ' reads as ', got, ok
    end subroutine reads_real

    subroutine expect(got, wanted)
        character(*), intent(in) :: got, wanted

        if (got == wanted) return
        failures = failures + 1
        print *, 'got ', got, ', wanted ', wanted
    end subroutine expect

end program test_pw_text
