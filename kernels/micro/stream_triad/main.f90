!> STREAM triad: a(i) = b(i) + s*c(i).
module stream_triad
    use pw_kinds, only: r8
    implicit none
    private

    public :: element

contains

    !> The element that a pass computes from x = [a, b, c, d] and the scalar s.
    pure real(r8) function element(x, s)
        real(r8), intent(in) :: x(4), s

        element = x(2) + s*x(3)
    end function element

end module stream_triad

program main
    use pw_harness, only: run_kernel
    use pw_streams, only: streams_t
    use stream_triad, only: element
    implicit none
    type(streams_t) :: kernel

    kernel%name = 'stream_triad'
    kernel%summary = 'bandwidth of a(i) = b(i) + s*c(i)'
    kernel%arrays = 3
    kernel%loads = 2
    kernel%flops = 2
    kernel%element => element
    call run_kernel(kernel)
end program main
