!> The plain loop, which the compiler may transform freely.
subroutine pw_copy_plain(n, target, source) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
    implicit none
    integer(c_int64_t), intent(in), value :: n
    real(c_double), intent(out) :: target(n)
    real(c_double), intent(in) :: source(n)
    integer(c_int64_t) :: i

    do i = 1, n
        target(i) = source(i)
    end do
end subroutine pw_copy_plain
