!> NaN and Inf count as the largest deviation, wherever they stand.
program test_pw_deviation
    use, intrinsic :: ieee_arithmetic, only: ieee_negative_inf, ieee_positive_inf, ieee_quiet_nan, ieee_signaling_nan, ieee_value
    use pw_deviation, only: worse, worst_of
    use pw_kinds, only: r8
    implicit none
    real(r8), parameter :: most = huge(1.0_r8)
    real(r8) :: odd(4)
    integer :: i

    odd = [ieee_value(1.0_r8, ieee_quiet_nan), ieee_value(1.0_r8, ieee_signaling_nan), &
           ieee_value(1.0_r8, ieee_positive_inf), ieee_value(1.0_r8, ieee_negative_inf)]
    do i = 1, size(odd)
        if (worse(0.5_r8, odd(i)) < most) error stop 'a deviation that is not finite was missed'
        if (worst_of([1.0_r8, odd(i), 2.0_r8]) < most) error stop 'it was missed among others'
        if (worst_of([odd(i), 1.0_r8]) < most) error stop 'it was missed at the first position'
    end do
    if (worse(0.5_r8, 0.25_r8) > 0.5_r8 .or. worse(0.5_r8, 0.75_r8) < 0.75_r8) error stop 'not the larger one'
    if (worst_of([real(r8) ::]) > 0.0_r8 .or. worst_of([3.0_r8, 1.0_r8]) < 3.0_r8) error stop 'not the largest one'
end program test_pw_deviation
