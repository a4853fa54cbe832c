!> DAXPY: a(i) = a(i) + s*b(i).
module stream_daxpy
    use pw_kinds, only: r8
    implicit none
    private

    public :: element

contains

    !> The element that a pass computes from x = [a, b, c, d] and the scalar s.
    pure real(r8) function element(x, s)
        real(r8), intent(in) :: x(4), s

        element = x(1) + s*x(2)
    end function element

end module stream_daxpy

program main
    use pw_harness, only: run_kernel
    use pw_streams, only: streams_t
    use stream_daxpy, only: element
    implicit none
    type(streams_t) :: kernel

    kernel%name = 'stream_daxpy'
    kernel%summary = 'bandwidth of a(i) = a(i) + s*b(i)'
    kernel%arrays = 2
    kernel%loads = 2
    kernel%flops = 2
    kernel%updates = .true.
    kernel%flips = .true.
    kernel%element => element
    call run_kernel(kernel)
end program main
