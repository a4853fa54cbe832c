!> a(c(i)) = b(i); the shared driver is pw_indirect.
program main
    use pw_harness, only: run_kernel
    use pw_indirect, only: indirect_t
    implicit none
    type(indirect_t) :: kernel

    kernel%name = 'scatter'
    kernel%summary = 'stores through an index array, a(c(i)) = b(i)'
    kernel%default_working_set = '80MiB'
    kernel%scatters = .true.
    call run_kernel(kernel)
end program main
