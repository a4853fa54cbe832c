!> Rows of a length that the compiler knows, in arrays whose rows are `leading` numbers apart: it decides on vectors.
subroutine pw_masked_rows_plain(length, rows, leading, y, x) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
    implicit none
    integer(c_int64_t), intent(in), value :: length, rows, leading
    real(c_double), intent(inout) :: y(leading, rows)
    real(c_double), intent(in) :: x(leading, rows)
    integer(c_int64_t) :: j
    integer :: i

    select case (length)
    case (1)
        do j = 1, rows
            do i = 1, 1
                y(i, j) = y(i, j) + x(i, j)
            end do
        end do
    case (2)
        do j = 1, rows
            do i = 1, 2
                y(i, j) = y(i, j) + x(i, j)
            end do
        end do
    case (3)
        do j = 1, rows
            do i = 1, 3
                y(i, j) = y(i, j) + x(i, j)
            end do
        end do
    case (4)
        do j = 1, rows
            do i = 1, 4
                y(i, j) = y(i, j) + x(i, j)
            end do
        end do
    case (5)
        do j = 1, rows
            do i = 1, 5
                y(i, j) = y(i, j) + x(i, j)
            end do
        end do
    case (6)
        do j = 1, rows
            do i = 1, 6
                y(i, j) = y(i, j) + x(i, j)
            end do
        end do
    case (7)
        do j = 1, rows
            do i = 1, 7
                y(i, j) = y(i, j) + x(i, j)
            end do
        end do
    case (8)
        do j = 1, rows
            do i = 1, 8
                y(i, j) = y(i, j) + x(i, j)
            end do
        end do
    end select
end subroutine pw_masked_rows_plain
