!> The driver of kernels that multiply matrices by BLAS.
module pw_blas
    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t, c_ptr
    use pw_computed_by, only: verify_library
    use pw_elements, only: element_types
    use pw_error, only: error_t
    use pw_gemm, only: gemm_t, read_gemm_options
    use pw_kinds, only: i8, r8
    use pw_simd, only: place_of
    implicit none
    private

    !> The routine, whose name is the kernel's, is called once per pass and thread, for the thread's columns.
    type, extends(gemm_t), public :: blas_gemm_t
    contains
        procedure :: read_options, multiply
    end type blas_gemm_t

    interface
        !> Timed code: c(:, :columns) = c(:, :columns) + alpha a b(:, :columns), a with n rows and columns, `stride` elements
        !> from column to column.
        subroutine pw_gemm_call(n, columns, stride, alpha, a, b, c) bind(c)
            import :: c_double, c_int64_t, c_ptr
            integer(c_int64_t), intent(in), value :: n, columns, stride
            real(c_double), intent(in), value :: alpha
            type(c_ptr), intent(in), value :: a, b, c
        end subroutine pw_gemm_call
    end interface

contains

    subroutine read_options(self, error)
        class(blas_gemm_t), intent(inout) :: self
        type(error_t), intent(inout) :: error

        if (scan(self%name(1:1), 'sc') > 0) self%type = place_of('fp32', element_types)
        if (scan(self%name(1:1), 'cz') > 0) self%parts = 2
        call read_gemm_options(self, error)
        if (error%failed()) return
        call verify_library(self%configuration, self%name//'_', error)
    end subroutine read_options

    subroutine multiply(self, passes, alpha, first, last)
        class(blas_gemm_t), intent(in) :: self
        integer(i8), intent(in) :: passes, first, last
        real(r8), intent(in) :: alpha
        integer(i8) :: pass
        real(r8) :: signed
        type(c_ptr) :: a, b, c

        signed = alpha
        a = self%column_at(1, 1_i8)
        b = self%column_at(2, first)
        c = self%column_at(3, first)
        do pass = 1, passes
            call pw_gemm_call(self%n, last - first + 1, self%stride, signed, a, b, c)
            signed = -signed
        end do
    end subroutine multiply

end module pw_blas
