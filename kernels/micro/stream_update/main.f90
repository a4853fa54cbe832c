!> Update: a(i) = -a(i).
module stream_update
    use pw_kinds, only: r8
    implicit none
    private

    public :: element

contains

    !> The element that a pass computes from x = [a, b, c, d] and the scalar s.
    pure real(r8) function element(x, s)
        real(r8), intent(in) :: x(4), s

        associate (unused => s)
        end associate
        element = -x(1)
    end function element

end module stream_update

program main
    use pw_harness, only: run_kernel
    use pw_streams, only: streams_t
    use stream_update, only: element
    implicit none
    type(streams_t) :: kernel

    kernel%name = 'stream_update'
    kernel%summary = 'bandwidth of a(i) = -a(i)'
    kernel%arrays = 1
    kernel%loads = 1
    kernel%updates = .true.
    kernel%element => element
    call run_kernel(kernel)
end program main
