!> A loop whose order the source allows to change. (flang-22 has no indices of 64 bits under `omp simd`.)
function width_reduction(n, a, b) result(total)
    use, intrinsic :: iso_c_binding, only: c_double, c_int
    implicit none
    integer(c_int), intent(in) :: n
    real(c_double), intent(in) :: a(n), b(n)
    real(c_double) :: total
    integer(c_int) :: i

    total = 0.0_c_double
    !$omp simd reduction(+: total)
    do i = 1, n
        total = total + a(i)*b(i)
    end do
end function width_reduction
