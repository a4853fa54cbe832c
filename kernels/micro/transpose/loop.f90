!> The transpose as compiled from plain loops: stores along a column, loads a column apart.
subroutine pw_transpose_naive(n, leading, first, last, a, b, add) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
    implicit none
    integer(c_int64_t), intent(in), value :: n, leading, first, last, add
    real(c_double), intent(in) :: a(leading, 0:n - 1)
    real(c_double), intent(inout) :: b(leading, 0:n - 1)
    integer(c_int64_t) :: i, j

    do j = first, last - 1
        if (add == 0) then
            do i = 0, n - 1
                b(i + 1, j) = a(j + 1, i)
            end do
        else
            do i = 0, n - 1
                b(i + 1, j) = b(i + 1, j) + a(j + 1, i)
            end do
        end if
    end do
end subroutine pw_transpose_naive
