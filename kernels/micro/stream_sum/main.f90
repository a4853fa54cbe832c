!> Sum: total = total + a(i).
module stream_sum
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
        element = x(1)
    end function element

end module stream_sum

program main
    use pw_harness, only: run_kernel
    use pw_streams, only: streams_t
    use stream_sum, only: element
    implicit none
    type(streams_t) :: kernel

    kernel%name = 'stream_sum'
    kernel%summary = 'bandwidth of total = total + a(i)'
    kernel%arrays = 1
    kernel%loads = 1
    kernel%stores = 0
    kernel%flops = 1
    kernel%reduces = .true.
    kernel%element => element
    call run_kernel(kernel)
end program main
