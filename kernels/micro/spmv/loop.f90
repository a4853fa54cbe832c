!> The products as plain loops; see spmv.h.
subroutine pw_spmv_crs(extent, start, column, value, x, y) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int32_t, c_int64_t
    implicit none
    integer(c_int64_t), intent(in) :: extent(3)
    integer(c_int64_t), intent(in) :: start(0:extent(1))
    integer(c_int32_t), intent(in) :: column(0:*)
    real(c_double), intent(in) :: value(0:*), x(0:*)
    real(c_double), intent(inout) :: y(0:extent(1) - 1)
    integer(c_int64_t) :: i, k
    real(c_double) :: total

    do i = 0, extent(1) - 1
        total = 0.0_c_double
        do k = start(i), start(i + 1) - 1
            total = total + value(k)*x(column(k))
        end do
        y(i) = total
    end do
end subroutine pw_spmv_crs

subroutine pw_spmv_sell(extent, start, order, column, value, x, y) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int32_t, c_int64_t
    implicit none
    integer, parameter :: lanes = 8     ! rows at once, as in spmv.h
    integer(c_int64_t), intent(in) :: extent(3)
    integer(c_int64_t), intent(in) :: start(0:extent(1))
    integer(c_int32_t), intent(in) :: order(0:extent(1)*extent(2) - 1), column(0:*)
    real(c_double), intent(in) :: value(0:*), x(0:*)
    real(c_double), intent(inout) :: y(0:*)
    integer(c_int64_t) :: c, k, row, r
    real(c_double) :: total(0:lanes - 1)

    do c = 0, extent(1) - 1
        do row = 0, extent(2) - 1, lanes
            total = 0.0_c_double
            do k = start(c) + row, start(c + 1) - 1, extent(2)
                do r = 0, lanes - 1
                    total(r) = total(r) + value(k + r)*x(column(k + r))
                end do
            end do
            do r = 0, lanes - 1
                y(order(c*extent(2) + row + r)) = total(r)
            end do
        end do
    end do
end subroutine pw_spmv_sell
