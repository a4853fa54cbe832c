!> Dot product: total = total + a(i)*b(i).
module stream_dot
    use pw_kinds, only: r8
    implicit none
    private

    public :: element

contains

    !> The summand that a pass computes from x = [a, b, c, d] and the scalar s.
    pure real(r8) function element(x, s)
        real(r8), intent(in) :: x(4), s

        associate (unused => s)
        end associate
        element = x(1)*x(2)
    end function element

end module stream_dot

program main
    use pw_harness, only: run_kernel
    use pw_streams, only: streams_t
    use stream_dot, only: element
    implicit none
    type(streams_t) :: kernel

    kernel%name = 'stream_dot'
    kernel%summary = 'bandwidth of total = total + a(i)*b(i)'
    kernel%arrays = 2
    kernel%loads = 2
    kernel%stores = 0
    kernel%flops = 2
    kernel%reduces = .true.
    kernel%element => element
    call run_kernel(kernel)
end program main
