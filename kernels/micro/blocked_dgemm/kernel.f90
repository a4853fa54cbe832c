!> The plain loops, in both orders.
subroutine pw_gemm_by_loops(way, n, columns, stride, alpha, a, b, c) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
    implicit none
    integer(c_int64_t), intent(in), value :: way, n, columns, stride
    real(c_double), intent(in), value :: alpha
    real(c_double), intent(in) :: a(stride, n), b(stride, columns)
    real(c_double), intent(inout) :: c(stride, columns)
    integer(c_int64_t), parameter :: dot = 1    ! as in blocked_dgemm.h
    integer(c_int64_t) :: i, j, p
    real(c_double) :: sum

    do j = 1, columns
        if (way == dot) then
            do i = 1, n
                sum = 0.0_c_double
                do p = 1, n
                    sum = sum + a(i, p)*b(p, j)
                end do
                c(i, j) = c(i, j) + alpha*sum
            end do
        else
            do p = 1, n
                do i = 1, n
                    c(i, j) = c(i, j) + a(i, p)*(alpha*b(p, j))
                end do
            end do
        end if
    end do
end subroutine pw_gemm_by_loops
