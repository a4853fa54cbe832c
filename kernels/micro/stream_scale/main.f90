!> Scale: a(i) = s*b(i).
module stream_scale
    use pw_kinds, only: r8
    implicit none
    private

    public :: element

contains

    !> The element that a pass computes from x = [a, b, c, d] and the scalar s.
    pure real(r8) function element(x, s)
        real(r8), intent(in) :: x(4), s

        element = s*x(2)
    end function element

end module stream_scale

program main
    use pw_harness, only: run_kernel
    use pw_streams, only: streams_t
    use stream_scale, only: element
    implicit none
    type(streams_t) :: kernel

    kernel%name = 'stream_scale'
    kernel%summary = 'bandwidth of a(i) = s*b(i)'
    kernel%arrays = 2
    kernel%loads = 1
    kernel%flops = 1
    kernel%element => element
    call run_kernel(kernel)
end program main
