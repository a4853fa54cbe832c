!> y(i) = y(i) + c*x(i), real and imaginary part adjacent (array of structures).
subroutine pw_zaxpy_aos(n, c_re, c_im, x, y) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
    implicit none
    integer(c_int64_t), intent(in), value :: n
    real(c_double), intent(in), value :: c_re, c_im
    complex(c_double), intent(in) :: x(n)
    complex(c_double), intent(inout) :: y(n)
    complex(c_double) :: c
    integer(c_int64_t) :: i

    c = cmplx(c_re, c_im, c_double)
    do i = 1, n
        y(i) = y(i) + c*x(i)
    end do
end subroutine pw_zaxpy_aos

!> The same, real and imaginary parts in separate arrays (structure of arrays).
subroutine pw_zaxpy_soa(n, c_re, c_im, x_re, x_im, y_re, y_im) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
    implicit none
    integer(c_int64_t), intent(in), value :: n
    real(c_double), intent(in), value :: c_re, c_im
    real(c_double), intent(in) :: x_re(n), x_im(n)
    real(c_double), intent(inout) :: y_re(n), y_im(n)
    integer(c_int64_t) :: i

    do i = 1, n
        y_re(i) = y_re(i) + (c_re*x_re(i) - c_im*x_im(i))
        y_im(i) = y_im(i) + (c_re*x_im(i) + c_im*x_re(i))
    end do
end subroutine pw_zaxpy_soa
