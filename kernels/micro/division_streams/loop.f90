!> Divisions by one array.
subroutine pw_loop(n, stride, q, tracer, metric, p, p_tracer) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
    implicit none
    integer(c_int64_t), intent(in), value :: n, stride
    real(c_double), intent(inout) :: q(stride, 5), tracer(stride, 6)
    real(c_double), intent(in) :: metric(n), p(stride, 5), p_tracer(stride, 6)
    integer(c_int64_t) :: i, j

    do i = 1, n
        q(i, 1) = p(i, 1)/metric(i)
        q(i, 2) = p(i, 2)/p(i, 1)
        q(i, 3) = p(i, 3)/p(i, 1)
        q(i, 4) = p(i, 4)/p(i, 1)
        q(i, 5) = p(i, 5)/p(i, 1)
    end do
    do j = 1, 6
        do i = 1, n
            tracer(i, j) = p_tracer(i, j)/p(i, 1)
        end do
    end do
end subroutine pw_loop
