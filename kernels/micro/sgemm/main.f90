!> Matrix multiplication by BLAS, single precision.
program main
    use pw_blas, only: blas_gemm_t
    use pw_gemm, only: gemm_fp32
    use pw_harness, only: run_kernel
    implicit none
    type(blas_gemm_t) :: kernel

    kernel%name = 'sgemm'
    kernel%summary = 'matrix multiplication by BLAS, single precision'
    kernel%default_working_set = '32MiB'
    kernel%type = gemm_fp32
    call run_kernel(kernel)
end program main
