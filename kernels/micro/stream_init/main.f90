!> Init: a(i) = s.
module stream_init
    use pw_kinds, only: r8
    implicit none
    private

    public :: element

contains

    !> The element that a pass computes from x = [a, b, c, d] and the scalar s.
    pure real(r8) function element(x, s)
        real(r8), intent(in) :: x(4), s

        associate (unused => x)
        end associate
        element = s
    end function element

end module stream_init

program main
    use pw_harness, only: run_kernel
    use pw_streams, only: streams_t
    use stream_init, only: element
    implicit none
    type(streams_t) :: kernel

    kernel%name = 'stream_init'
    kernel%summary = 'bandwidth of a(i) = s'
    kernel%arrays = 1
    kernel%loads = 0
    kernel%element => element
    call run_kernel(kernel)
end program main
