!> t = t + a(i)
!>
!> In pieces, so that the index has default kind: flang-22 rejects others under simd.
real(c_double) function pw_loop(n, a) bind(c) result(total)
    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
    implicit none
    integer(c_int64_t), intent(in), value :: n
    real(c_double), intent(in) :: a(n)
    integer(c_int64_t), parameter :: piece = 2_c_int64_t**24
    integer(c_int64_t) :: first
    integer :: i

    total = 0.0_c_double
    do first = 1, n, piece
        !$omp simd reduction(+: total)
        do i = 0, int(min(piece, n - first + 1)) - 1
            total = total + a(first + i)
        end do
    end do
end function pw_loop
