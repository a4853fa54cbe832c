!> Sizes as text, both ways.
program test_pw_text
    use pw_kinds, only: i8, r8
    use pw_text, only: bytes_to_text, text_to_bytes, to_text
    implicit none
    integer :: failures = 0

    call reads('4096', 4096_i8)
    call reads('0', 0_i8)
    call reads('64KiB', 65536_i8)
    call reads('1.5GiB', 1610612736_i8)
    call reads('256 MB', 256000000_i8)
    call reads('2kB', 2000_i8)
    call reads('7B', 7_i8)
    call refuses('')
    call refuses('-1')
    call refuses('12XiB')
    call refuses('KiB')
    call refuses('1.2.3MB')
    call refuses('1e3')
    call refuses('99999999999GiB')

    call expect(bytes_to_text(4096_i8), '4 KiB')
    call expect(bytes_to_text(1610612736_i8), '1.50 GiB')
    call expect(bytes_to_text(1023_i8), '1023 B')
    call expect(to_text(-12_i8), '-12')
    call expect(to_text(0.25_r8, 'f0.2'), '0.25')
    if (failures > 0) error stop 'test_pw_text: failures'

contains

    subroutine reads(text, bytes)
        character(*), intent(in) :: text
        integer(i8), intent(in) :: bytes
        integer(i8) :: got
        logical :: ok

        call text_to_bytes(text, got, ok)
        if (ok .and. got == bytes) return
        failures = failures + 1
        print *, text, ' reads as ', got, ok
    end subroutine reads

    subroutine refuses(text)
        character(*), intent(in) :: text
        integer(i8) :: got
        logical :: ok

        call text_to_bytes(text, got, ok)
        if (.not. ok .and. got == 0) return
        failures = failures + 1
        print *, text, ' is taken for ', got
    end subroutine refuses

    subroutine expect(got, wanted)
        character(*), intent(in) :: got, wanted

        if (got == wanted) return
        failures = failures + 1
        print *, 'got ', got, ', wanted ', wanted
    end subroutine expect

end program test_pw_text
