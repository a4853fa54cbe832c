!> The stencil as plain loops; see stencil.h. With sectors, 13 ways of L2 are for u (A64FX guide, sector cache, case 2).
subroutine pw_stencil7(points, rows, distance, h, u, rhs, unew) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
    implicit none
    integer(c_int64_t), intent(in) :: points(3)
    integer(c_int64_t), intent(in), value :: rows, distance
    real(c_double), intent(in) :: h(4), u(points(1), points(2), points(3) + 2), rhs(points(1), points(2), points(3) + 2)
    real(c_double), intent(inout) :: unew(points(1), points(2), points(3) + 2)
    integer(c_int64_t) :: i, j, k, block

    !OCL SCACHE_ISOLATE_WAY(L2=13)
    !OCL SCACHE_ISOLATE_ASSIGN(u)
    do block = 2, points(2) - 1, rows
        do k = 2, points(3) + 1
            do j = block, min(block + rows - 1, points(2) - 1)
                do i = 2, points(1) - 1
                    unew(i, j, k) = ((u(i + 1, j, k) + u(i - 1, j, k))*h(1) &
                                     + (u(i, j + 1, k) + u(i, j - 1, k))*h(2) &
                                     + (u(i, j, k + 1) + u(i, j, k - 1))*h(3) - rhs(i, j, k))*h(4)
                end do
            end do
        end do
    end do
    !OCL END_SCACHE_ISOLATE_ASSIGN
    !OCL END_SCACHE_ISOLATE_WAY
end subroutine pw_stencil7
