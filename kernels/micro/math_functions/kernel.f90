!> Functions of arrays in Fortran; kernel_functions.inc is the same for both types. gfortran reads the vector functions of
!> the C library from a file of that library, flang takes them from -fveclib. Fortran has no cube root and no power of ten;
!> those of the C library are called element by element. gfortran 12 vectorises such a call if the interface has `omp
!> declare simd` and the loop `omp simd`; flang-22 rejects the former, and the latter with such an index.
subroutine pw_math_fortran_fp64(function, n, x, z, y) bind(c)
    use, intrinsic :: iso_c_binding, only: c_int32_t, c_int64_t, c_real => c_double
    implicit none

    interface
        pure real(c_real) function cbrt(x) bind(c)
            import :: c_real
            real(c_real), intent(in), value :: x
        end function cbrt

        pure real(c_real) function exp10(x) bind(c)
            import :: c_real
            real(c_real), intent(in), value :: x
        end function exp10
    end interface

    include 'kernel_functions.inc'
end subroutine pw_math_fortran_fp64

subroutine pw_math_fortran_fp32(function, n, x, z, y) bind(c)
    use, intrinsic :: iso_c_binding, only: c_int32_t, c_int64_t, c_real => c_float
    implicit none

    interface
        pure real(c_real) function cbrt(x) bind(c, name='cbrtf')
            import :: c_real
            real(c_real), intent(in), value :: x
        end function cbrt

        pure real(c_real) function exp10(x) bind(c, name='exp10f')
            import :: c_real
            real(c_real), intent(in), value :: x
        end function exp10
    end interface

    include 'kernel_functions.inc'
end subroutine pw_math_fortran_fp32
