!> CGEMM of BLAS: c = c + alpha a b for the columns of b and c that a thread has.
subroutine pw_gemm_call(n, columns, stride, alpha, a, b, c) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_float, c_int64_t
    implicit none
    integer(c_int64_t), intent(in), value :: n, columns, stride
    real(c_double), intent(in), value :: alpha
    complex(c_float), intent(in) :: a(stride, n), b(stride, columns)
    complex(c_float), intent(inout) :: c(stride, columns)
    interface
        subroutine cgemm(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
            import :: c_float
            character, intent(in) :: transa, transb
            integer, intent(in) :: m, n, k, lda, ldb, ldc
            complex(c_float), intent(in) :: alpha, beta, a(lda, *), b(ldb, *)
            complex(c_float), intent(inout) :: c(ldc, *)
        end subroutine cgemm
    end interface
    integer :: rows, width, step

    rows = int(n)
    width = int(columns)
    step = int(stride)
    call cgemm('N', 'N', rows, width, rows, cmplx(alpha, kind=c_float), a, step, b, step, &
               (1.0_c_float, 0.0_c_float), c, step)
end subroutine pw_gemm_call
