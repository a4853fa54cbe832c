!> a(i) = s
subroutine pw_loop(n, a, s) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
    implicit none
    integer(c_int64_t), intent(in), value :: n
    real(c_double), intent(inout) :: a(n)
    real(c_double), intent(in), value :: s
    integer(c_int64_t) :: i

    do i = 1, n
        a(i) = s
    end do
end subroutine pw_loop
