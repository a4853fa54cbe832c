!> FMA dependency chains as compiled. Rows depend on those `distance` before them: the compiler does not
!> know how far that is and keeps their order. Within a row there is no dependency, as the directive states. `y` begins with
!> the row that the first row depends on.
subroutine pw_chains_source(fmas, rows, distance, c, y) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
    implicit none
    integer(c_int64_t), intent(in), value :: fmas, rows, distance
    real(c_double), intent(in) :: c(0:9)
    real(c_double), intent(inout) :: y(8, 1 - distance:rows)
    integer(c_int64_t) :: j
    integer :: i

    select case (fmas)
    case (1)
        do j = 1, rows
            !$omp simd
            do i = 1, 8
                y(i, j) = c(0) + y(i, j - distance)*c(1)
            end do
        end do
    case (2)
        do j = 1, rows
            !$omp simd
            do i = 1, 8
                y(i, j) = c(0) + y(i, j - distance)*(c(1) + y(i, j - distance)*c(2))
            end do
        end do
    case (3)
        do j = 1, rows
            !$omp simd
            do i = 1, 8
                y(i, j) = c(0) + y(i, j - distance)*(c(1) + y(i, j - distance)*(c(2) + y(i, j - distance)*c(3)))
            end do
        end do
    case (4)
        do j = 1, rows
            !$omp simd
            do i = 1, 8
                y(i, j) = c(0) + y(i, j - distance)*(c(1) + y(i, j - distance)*(c(2) + y(i, j - distance)*( &
                          c(3) + y(i, j - distance)*c(4))))
            end do
        end do
    case (5)
        do j = 1, rows
            !$omp simd
            do i = 1, 8
                y(i, j) = c(0) + y(i, j - distance)*(c(1) + y(i, j - distance)*(c(2) + y(i, j - distance)*( &
                          c(3) + y(i, j - distance)*(c(4) + y(i, j - distance)*c(5)))))
            end do
        end do
    case (6)
        do j = 1, rows
            !$omp simd
            do i = 1, 8
                y(i, j) = c(0) + y(i, j - distance)*(c(1) + y(i, j - distance)*(c(2) + y(i, j - distance)*( &
                          c(3) + y(i, j - distance)*(c(4) + y(i, j - distance)*(c(5) + y(i, j - distance)*c(6))))))
            end do
        end do
    case (7)
        do j = 1, rows
            !$omp simd
            do i = 1, 8
                y(i, j) = c(0) + y(i, j - distance)*(c(1) + y(i, j - distance)*(c(2) + y(i, j - distance)*( &
                          c(3) + y(i, j - distance)*(c(4) + y(i, j - distance)*(c(5) + y(i, j - distance)*( &
                          c(6) + y(i, j - distance)*c(7)))))))
            end do
        end do
    case (8)
        do j = 1, rows
            !$omp simd
            do i = 1, 8
                y(i, j) = c(0) + y(i, j - distance)*(c(1) + y(i, j - distance)*(c(2) + y(i, j - distance)*( &
                          c(3) + y(i, j - distance)*(c(4) + y(i, j - distance)*(c(5) + y(i, j - distance)*( &
                          c(6) + y(i, j - distance)*(c(7) + y(i, j - distance)*c(8))))))))
            end do
        end do
    case (9)
        do j = 1, rows
            !$omp simd
            do i = 1, 8
                y(i, j) = c(0) + y(i, j - distance)*(c(1) + y(i, j - distance)*(c(2) + y(i, j - distance)*( &
                          c(3) + y(i, j - distance)*(c(4) + y(i, j - distance)*(c(5) + y(i, j - distance)*( &
                          c(6) + y(i, j - distance)*(c(7) + y(i, j - distance)*(c(8) + y(i, j - distance)*c(9)))))))))
            end do
        end do
    end select
end subroutine pw_chains_source

!> The same with independent rows, because x and y are different memory: the compiler may process several rows at once.
subroutine pw_chains_interleaved(fmas, rows, c, x, y) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
    implicit none
    integer(c_int64_t), intent(in), value :: fmas, rows
    real(c_double), intent(in) :: c(0:9), x(8, rows)
    real(c_double), intent(inout) :: y(8, rows)
    integer(c_int64_t) :: j
    integer :: i

    select case (fmas)
    case (1)
        do j = 1, rows
            do i = 1, 8
                y(i, j) = c(0) + x(i, j)*c(1)
            end do
        end do
    case (2)
        do j = 1, rows
            do i = 1, 8
                y(i, j) = c(0) + x(i, j)*(c(1) + x(i, j)*c(2))
            end do
        end do
    case (3)
        do j = 1, rows
            do i = 1, 8
                y(i, j) = c(0) + x(i, j)*(c(1) + x(i, j)*(c(2) + x(i, j)*c(3)))
            end do
        end do
    case (4)
        do j = 1, rows
            do i = 1, 8
                y(i, j) = c(0) + x(i, j)*(c(1) + x(i, j)*(c(2) + x(i, j)*(c(3) + x(i, j)*c(4))))
            end do
        end do
    case (5)
        do j = 1, rows
            do i = 1, 8
                y(i, j) = c(0) + x(i, j)*(c(1) + x(i, j)*(c(2) + x(i, j)*(c(3) + x(i, j)*(c(4) + x(i, j)*c(5)))))
            end do
        end do
    case (6)
        do j = 1, rows
            do i = 1, 8
                y(i, j) = c(0) + x(i, j)*(c(1) + x(i, j)*(c(2) + x(i, j)*(c(3) + x(i, j)*(c(4) + x(i, j)*( &
                          c(5) + x(i, j)*c(6))))))
            end do
        end do
    case (7)
        do j = 1, rows
            do i = 1, 8
                y(i, j) = c(0) + x(i, j)*(c(1) + x(i, j)*(c(2) + x(i, j)*(c(3) + x(i, j)*(c(4) + x(i, j)*( &
                          c(5) + x(i, j)*(c(6) + x(i, j)*c(7)))))))
            end do
        end do
    case (8)
        do j = 1, rows
            do i = 1, 8
                y(i, j) = c(0) + x(i, j)*(c(1) + x(i, j)*(c(2) + x(i, j)*(c(3) + x(i, j)*(c(4) + x(i, j)*( &
                          c(5) + x(i, j)*(c(6) + x(i, j)*(c(7) + x(i, j)*c(8))))))))
            end do
        end do
    case (9)
        do j = 1, rows
            do i = 1, 8
                y(i, j) = c(0) + x(i, j)*(c(1) + x(i, j)*(c(2) + x(i, j)*(c(3) + x(i, j)*(c(4) + x(i, j)*( &
                          c(5) + x(i, j)*(c(6) + x(i, j)*(c(7) + x(i, j)*(c(8) + x(i, j)*c(9)))))))))
            end do
        end do
    end select
end subroutine pw_chains_interleaved
