! The plain loops, in both orders, and the tiles of packed blocks.
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

!> rows x columns of c plus alpha times a block of a times a panel of b, both packed in tiles (kernel.c), with zeros at the edges.
!> With sectors, two ways of L1 are for the panel. The guide's third case (A64FX guide, sector cache) gives the block another
!> way; these lines have one sector only.
subroutine pw_gemm_by_tile_loops(tile, rows, columns, depth, alpha, block, panel, stride, c) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
    implicit none
    integer(c_int64_t), intent(in) :: tile(2)
    integer(c_int64_t), intent(in), value :: rows, columns, depth, stride
    real(c_double), intent(in), value :: alpha
    real(c_double), intent(in) :: block(tile(1), depth, *), panel(tile(2), depth, *)
    real(c_double), intent(inout) :: c(stride, columns)
    real(c_double) :: sum(tile(1), tile(2))
    integer(c_int64_t) :: i, j, k, l, p

    !OCL SCACHE_ISOLATE_WAY(L2=7,L1=2)
    !OCL SCACHE_ISOLATE_ASSIGN(panel)
    do j = 0, (columns - 1)/tile(2)
        do i = 0, (rows - 1)/tile(1)
            sum = 0.0_c_double
            do p = 1, depth
                do l = 1, tile(2)
                    do k = 1, tile(1)
                        sum(k, l) = sum(k, l) + block(k, p, i + 1)*panel(l, p, j + 1)
                    end do
                end do
            end do
            do l = 1, min(tile(2), columns - j*tile(2))
                do k = 1, min(tile(1), rows - i*tile(1))
                    c(i*tile(1) + k, j*tile(2) + l) = c(i*tile(1) + k, j*tile(2) + l) + alpha*sum(k, l)
                end do
            end do
        end do
    end do
    !OCL END_SCACHE_ISOLATE_ASSIGN
    !OCL END_SCACHE_ISOLATE_WAY
end subroutine pw_gemm_by_tile_loops
