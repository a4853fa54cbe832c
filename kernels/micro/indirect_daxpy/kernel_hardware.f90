!> a(i) = a(i) + s*b(c(i)) element by element, or vectorised by the compiler; only out-of-order execution overlaps the misses.
subroutine pw_indirect_run(n, a, b, c, tuning) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int32_t, c_int64_t
    implicit none
    integer(c_int64_t), parameter :: vector = 1   ! as in pw_indirect.h
    integer(c_int64_t), intent(in), value :: n, tuning
    real(c_double), intent(inout) :: a(n)
    real(c_double), intent(in) :: b(*)
    integer(c_int32_t), intent(in) :: c(n)
    real(c_double), parameter :: s = 3.0_c_double   ! as in pw_indirect.f90
    integer(c_int64_t) :: i

    if (tuning == vector) then
        do i = 1, n
            a(i) = a(i) + s*b(c(i))
        end do
    else
        !dir$ novector
        !gcc$ novector
        do i = 1, n
            a(i) = a(i) + s*b(c(i))
        end do
    end if
end subroutine pw_indirect_run
