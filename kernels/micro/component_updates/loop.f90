!> Updates of six components.
!>
!> The outputs are passed as separate arrays: GCC assumes that columns of one array of unknown length depend
!> on each other, and does not vectorise the loop.
subroutine pw_loop(n, stride, a, b, c, d, e, f, t, s) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
    implicit none
    integer(c_int64_t), intent(in), value :: n, stride
    real(c_double), intent(inout) :: a(n), b(n), c(n), d(n), e(n), f(n)
    real(c_double), intent(in) :: t(stride, 6)
    real(c_double), intent(in), value :: s
    integer(c_int64_t) :: i

    do i = 1, n
        a(i) = a(i) + s*t(i, 1)
        b(i) = b(i) + s*t(i, 2)
        c(i) = c(i) + s*t(i, 3)
        d(i) = d(i) + s*t(i, 4)
        e(i) = e(i) + s*t(i, 5)
        f(i) = f(i) + s*t(i, 6)
    end do
end subroutine pw_loop
