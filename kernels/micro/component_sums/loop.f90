!> Sums of six components.
!>
!> The outputs are passed as separate arrays: GCC assumes that columns of one array of unknown length depend
!> on each other, and does not vectorise the loop.
subroutine pw_loop(n, stride, a, b, c, d, e, f, t0, t1, t2) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
    implicit none
    integer(c_int64_t), intent(in), value :: n, stride
    real(c_double), intent(inout) :: a(n), b(n), c(n), d(n), e(n), f(n)
    real(c_double), intent(in) :: t0(stride, 6), t1(stride, 6), t2(stride, 6)
    integer(c_int64_t) :: i

    do i = 1, n
        a(i) = t0(i, 1) + t1(i, 1) + t2(i, 1)
        b(i) = t0(i, 2) + t1(i, 2) + t2(i, 2)
        c(i) = t0(i, 3) + t1(i, 3) + t2(i, 3)
        d(i) = t0(i, 4) + t1(i, 4) + t2(i, 4)
        e(i) = t0(i, 5) + t1(i, 5) + t2(i, 5)
        f(i) = t0(i, 6) + t1(i, 6) + t2(i, 6)
    end do
end subroutine pw_loop
