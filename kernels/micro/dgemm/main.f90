!> Matrix multiplication by BLAS, double precision.
program main
    use pw_blas, only: blas_gemm_t
    use pw_gemm, only: gemm_fp64
    use pw_harness, only: run_kernel
    implicit none
    type(blas_gemm_t) :: kernel

    kernel%name = 'dgemm'
    kernel%summary = 'matrix multiplication by BLAS, double precision'
    kernel%default_working_set = '32MiB'
    kernel%type = gemm_fp64
    call run_kernel(kernel)
end program main
