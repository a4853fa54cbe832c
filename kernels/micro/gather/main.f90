!> a(i) = b(c(i)); the shared driver is pw_indirect.
program main
    use pw_harness, only: run_kernel
    use pw_indirect, only: indirect_t
    implicit none
    type(indirect_t) :: kernel

    kernel%name = 'gather'
    kernel%summary = 'loads through an index array, a(i) = b(c(i))'
    kernel%default_working_set = '96MiB'
    kernel%gathers = .true.
    call run_kernel(kernel)
end program main
