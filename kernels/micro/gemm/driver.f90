!> Multiplication of matrices by BLAS.
module gemm
    use, intrinsic :: iso_c_binding, only: c_double, c_int32_t, c_int64_t, c_ptr
    use pw_computed_by, only: verify_library
    use pw_elements, only: element_types
    use pw_error, only: error_t
    use pw_gemm, only: declare_gemm_options, gemm_t, read_gemm_options
    use pw_kinds, only: i8, r8
    use pw_options, only: option_choice
    use pw_simd, only: choice_of, place_of, words_available
    implicit none
    private

    ! In the order of kernel.c.
    character(12), parameter :: types(4) = [character(12) :: 'fp32', 'fp64', 'complex-fp32', 'complex-fp64']
    character(6), parameter :: routines(4) = ['sgemm_', 'dgemm_', 'cgemm_', 'zgemm_']

    !> The routine is called once per pass and thread, for the thread's columns.
    type, extends(gemm_t), public :: blas_gemm_t
        private
        integer(c_int32_t) :: routine = 1
    contains
        procedure :: declare_options, read_options, multiply
    end type blas_gemm_t

    interface
        !> Timed code: c(:, :columns) = c(:, :columns) + alpha a b(:, :columns), a with n rows and columns, `stride` elements
        !> from column to column.
        subroutine pw_gemm_call(type, n, columns, stride, alpha, a, b, c) bind(c)
            import :: c_double, c_int32_t, c_int64_t, c_ptr
            integer(c_int32_t), intent(in), value :: type
            integer(c_int64_t), intent(in), value :: n, columns, stride
            real(c_double), intent(in), value :: alpha
            type(c_ptr), intent(in), value :: a, b, c
        end subroutine pw_gemm_call
    end interface

contains

    subroutine declare_options(self)
        class(blas_gemm_t), intent(inout) :: self

        call self%options%add('type', option_choice, 'fp64', 'type of the elements', values=words_available(types))
        call declare_gemm_options(self)
    end subroutine declare_options

    subroutine read_options(self, error)
        class(blas_gemm_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: real_type

        self%routine = choice_of(self%options, 'type', types)
        real_type = trim(types(self%routine))
        self%parts = merge(2, 1, index(real_type, 'complex-') == 1)
        self%type = place_of(real_type(index(real_type, 'fp'):), element_types)
        call read_gemm_options(self, error)
        if (error%failed()) return
        call verify_library(self%configuration, routines(self%routine), error)
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
            call pw_gemm_call(self%routine, self%n, last - first + 1, self%stride, signed, a, b, c)
            signed = -signed
        end do
    end subroutine multiply

end module gemm
