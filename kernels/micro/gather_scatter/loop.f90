!> a(c(i)) = b(c(i))
subroutine pw_loop(n, a, b, c, s) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int32_t, c_int64_t
    implicit none
    integer(c_int64_t), intent(in), value :: n
    real(c_double), intent(inout) :: a(*)
    real(c_double), intent(in) :: b(*)
    integer(c_int32_t), intent(in) :: c(n)
    real(c_double), intent(in), value :: s
    integer(c_int64_t) :: i

    do i = 1, n
        a(c(i)) = b(c(i))
    end do
end subroutine pw_loop
