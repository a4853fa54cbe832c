!> Loops in Fortran. gfortran knows the vector functions of the C library from a file of the latter's, flang from -fveclib.
!> Fortran has no cube root; that of the C library is called one by one: gfortran 12 makes no vectors of it, `declare simd` or
!> not, and flang-22 stops at that directive.
subroutine pw_math_fortran_fp64(function, n, x, z, y) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int32_t, c_int64_t
    implicit none
    integer(c_int32_t), intent(in), value :: function
    integer(c_int64_t), intent(in), value :: n
    real(c_double), intent(in) :: x(n), z(n)
    real(c_double), intent(inout) :: y(n)
    integer(c_int64_t) :: i

    interface
        pure real(c_double) function cbrt(x) bind(c)
            import :: c_double
            real(c_double), intent(in), value :: x
        end function cbrt
    end interface

    select case (function)
    case (1)
        do i = 1, n
            y(i) = exp(x(i))
        end do
    case (2)
        do i = 1, n
            y(i) = log(x(i))
        end do
    case (3)
        do i = 1, n
            y(i) = sin(x(i))
        end do
    case (4)
        do i = 1, n
            y(i) = cos(x(i))
        end do
    case (5)
        do i = 1, n
            y(i) = tan(x(i))
        end do
    case (6)
        do i = 1, n
            y(i) = x(i)**z(i)
        end do
    case (7)
        do i = 1, n
            y(i) = sqrt(x(i))
        end do
    case (8)
        do i = 1, n
            y(i) = cbrt(x(i))
        end do
    case (9)
        do i = 1, n
            y(i) = erf(x(i))
        end do
    end select
end subroutine pw_math_fortran_fp64

!> The same in single precision.
subroutine pw_math_fortran_fp32(function, n, x, z, y) bind(c)
    use, intrinsic :: iso_c_binding, only: c_float, c_int32_t, c_int64_t
    implicit none
    integer(c_int32_t), intent(in), value :: function
    integer(c_int64_t), intent(in), value :: n
    real(c_float), intent(in) :: x(n), z(n)
    real(c_float), intent(inout) :: y(n)
    integer(c_int64_t) :: i

    interface
        pure real(c_float) function cbrtf(x) bind(c)
            import :: c_float
            real(c_float), intent(in), value :: x
        end function cbrtf
    end interface

    select case (function)
    case (1)
        do i = 1, n
            y(i) = exp(x(i))
        end do
    case (2)
        do i = 1, n
            y(i) = log(x(i))
        end do
    case (3)
        do i = 1, n
            y(i) = sin(x(i))
        end do
    case (4)
        do i = 1, n
            y(i) = cos(x(i))
        end do
    case (5)
        do i = 1, n
            y(i) = tan(x(i))
        end do
    case (6)
        do i = 1, n
            y(i) = x(i)**z(i)
        end do
    case (7)
        do i = 1, n
            y(i) = sqrt(x(i))
        end do
    case (8)
        do i = 1, n
            y(i) = cbrtf(x(i))
        end do
    case (9)
        do i = 1, n
            y(i) = erf(x(i))
        end do
    end select
end subroutine pw_math_fortran_fp32
