!> Rows of a length known to the compiler, in arrays whose rows are `leading` numbers apart: it decides on vectors. `rows_of`
!> is inlined at each call; everything is passed as arguments, because flang-22 does not vectorise accesses to host
!> variables.
subroutine pw_masked_rows_plain(length, rows, leading, y, x) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
    implicit none
    integer(c_int64_t), intent(in), value :: length, rows, leading
    real(c_double), intent(inout) :: y(leading, rows)
    real(c_double), intent(in) :: x(leading, rows)

    select case (length)
    case (1); call rows_of(1, rows, leading, y, x)
    case (2); call rows_of(2, rows, leading, y, x)
    case (3); call rows_of(3, rows, leading, y, x)
    case (4); call rows_of(4, rows, leading, y, x)
    case (5); call rows_of(5, rows, leading, y, x)
    case (6); call rows_of(6, rows, leading, y, x)
    case (7); call rows_of(7, rows, leading, y, x)
    case (8); call rows_of(8, rows, leading, y, x)
    end select

contains

    pure subroutine rows_of(length, rows, leading, y, x)
        integer, intent(in), value :: length
        integer(c_int64_t), intent(in), value :: rows, leading
        real(c_double), intent(inout) :: y(leading, rows)
        real(c_double), intent(in) :: x(leading, rows)
        integer(c_int64_t) :: j
        integer :: i

        do j = 1, rows
            do i = 1, length
                y(i, j) = y(i, j) + x(i, j)
            end do
        end do
    end subroutine rows_of

end subroutine pw_masked_rows_plain
