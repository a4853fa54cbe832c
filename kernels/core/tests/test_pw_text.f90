!> Sizes as text, both ways, and numbers from text.
program test_pw_text
    use pw_kinds, only: i8, r8
    use pw_text, only: bytes_to_text, text_to_bytes, text_to_real, to_text
    implicit none
    integer :: failures = 0, power

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

    call reads_real('2', 2.0_r8)
    call reads_real('-0.5', -0.5_r8)
    call reads_real('+.5', 0.5_r8)
    call reads_real('3.', 3.0_r8)
    call reads_real('1e-3', 1.0e-3_r8)
    call reads_real('6.02D+23', 6.02e23_r8)
    call refuses_real('')
    call refuses_real('.')
    call refuses_real('e5')
    call refuses_real('1e')
    call refuses_real('1e+')
    call refuses_real('1.2.3')
    call refuses_real('1 2')
    call refuses_real('2*1')
    call refuses_real('3/')
    call refuses_real('1,5')
    call refuses_real('nan')
    call refuses_real('inf')
    call refuses_real('1e999')
    call refuses_real('0x10')
    call refuses_real('1e2.5')

    ! Every unit that is printed is read.
    do power = 0, 5
        call reads(bytes_to_text(3*1024_i8**power), 3*1024_i8**power)
    end do
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
        print *, text, ' is read as ', got
    end subroutine refuses

    subroutine reads_real(text, value)
        character(*), intent(in) :: text
        real(r8), intent(in) :: value
        real(r8) :: got
        logical :: ok

        call text_to_real(text, got, ok)
        if (ok .and. abs(got - value) <= 0.0_r8) return
        failures = failures + 1
        print *, text, ' reads as ', got, ok
    end subroutine reads_real

    subroutine refuses_real(text)
        character(*), intent(in) :: text
        real(r8) :: got
        logical :: ok

        call text_to_real(text, got, ok)
        if (.not. ok .and. abs(got) <= 0.0_r8) return
        failures = failures + 1
        print *, text, ' is read as ', got
    end subroutine refuses_real

    subroutine expect(got, wanted)
        character(*), intent(in) :: got, wanted

        if (got == wanted) return
        failures = failures + 1
        print *, 'got ', got, ', wanted ', wanted
    end subroutine expect

end program test_pw_text
