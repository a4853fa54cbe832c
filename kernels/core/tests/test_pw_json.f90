!> The JSON writer against texts written by hand; numbers are read back.
program test_pw_json
    use, intrinsic :: ieee_arithmetic, only: ieee_quiet_nan, ieee_value
    use pw_json, only: json_t
    use pw_kinds, only: i4, i8, r8
    implicit none
    type(json_t) :: json
    real(r8) :: back
    character(:), allocatable :: text

    call json%open_object('')
    call json%put('text', 'a "quoted" \ back'//achar(10)//'line')
    call json%put('integer', -9223372036854775807_i8)
    call json%put('yes', .true.)
    call json%open_array('list')
    call json%put('', 1_i4)
    call json%open_object('')
    call json%close_object()
    call json%close_array()
    call json%put('numbers', [3_i4, 4_i4])
    call json%put('nothing', ieee_value(1.0_r8, ieee_quiet_nan))
    call json%close_object()
    if (json%text() /= '{"text":"a \"quoted\" \\ back\u000Aline","integer":-9223372036854775807,"yes":true,'// &
        '"list":[1,{}],"numbers":[3,4],"nothing":null}') error stop 'wrong text'

    call put_alone(1.0_r8/3.0_r8)
    call put_alone(-2.2250738585072014e-308_r8)
    call put_alone(1.7976931348623157e308_r8)
    call put_alone(0.0_r8)

    call long_text()

contains

    subroutine put_alone(value)
        real(r8), intent(in) :: value
        type(json_t) :: one

        call one%put('', value)
        text = one%text()
        read (text, *) back
        if (abs(back - value) > 0.0_r8) error stop 'a number changed'
        if (verify(text(1:1), '-0123456789') /= 0) error stop 'JSON numbers start with a digit or minus'
    end subroutine put_alone

    subroutine long_text()
        type(json_t) :: long
        integer(i8) :: i

        call long%open_array('')
        do i = 1, 100000
            call long%put('', 1_i4)
        end do
        call long%close_array()
        if (len(long%text()) /= 200001) error stop 'a long text lost something'
    end subroutine long_text

end program test_pw_json
