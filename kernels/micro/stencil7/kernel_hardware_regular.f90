!> The stencil as compiled from the plain loop; hardware prefetch only. See stencil.h.
subroutine pw_stencil7(nx, ny, planes, rows, tuning, h, u, rhs, unew) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
    implicit none
    integer(c_int64_t), intent(in), value :: nx, ny, planes, rows, tuning
    real(c_double), intent(in) :: h(4), u(nx, ny, planes + 2), rhs(nx, ny, planes + 2)
    real(c_double), intent(inout) :: unew(nx, ny, planes + 2)
    integer(c_int64_t) :: i, j, k, block

    associate (unused => tuning)
    end associate
    do block = 2, ny - 1, rows
        do k = 2, planes + 1
            do j = block, min(block + rows - 1, ny - 1)
                do i = 2, nx - 1
                    unew(i, j, k) = ((u(i + 1, j, k) + u(i - 1, j, k))*h(1) &
                                     + (u(i, j + 1, k) + u(i, j - 1, k))*h(2) &
                                     + (u(i, j, k + 1) + u(i, j, k - 1))*h(3) - rhs(i, j, k))*h(4)
                end do
            end do
        end do
    end do
end subroutine pw_stencil7
