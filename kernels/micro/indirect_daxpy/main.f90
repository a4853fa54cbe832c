!> a(i) = a(i) + s * b(c(i)); the shared driver is pw_indirect.
program main
    use pw_harness, only: run_kernel
    use pw_indirect, only: indirect_t
    implicit none
    type(indirect_t) :: kernel

    kernel%name = 'indirect_daxpy'
    kernel%summary = 'daxpy that reads b through an index array, a(i) = a(i) + s * b(c(i))'
    kernel%default_working_set = '96MiB'
    kernel%gathers = .true.
    kernel%accumulates = .true.
    call run_kernel(kernel)
end program main
