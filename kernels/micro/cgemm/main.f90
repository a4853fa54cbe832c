!> Matrix multiplication by BLAS, complex single precision.
program main
    use pw_blas, only: blas_gemm_t
    use pw_gemm, only: gemm_complex_fp32
    use pw_harness, only: run_kernel
    implicit none
    type(blas_gemm_t) :: kernel

    kernel%name = 'cgemm'
    kernel%summary = 'matrix multiplication by BLAS, complex single precision'
    kernel%default_working_set = '32MiB'
    kernel%type = gemm_complex_fp32
    call run_kernel(kernel)
end program main
