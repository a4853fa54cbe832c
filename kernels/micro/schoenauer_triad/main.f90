!> The Schoenauer vector triad: a(i) = b(i) + c(i)*d(i).
module schoenauer_triad
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
        element = x(2) + x(3)*x(4)
    end function element

end module schoenauer_triad

program main
    use pw_harness, only: run_kernel
    use pw_streams, only: streams_t
    use schoenauer_triad, only: element
    implicit none
    type(streams_t) :: kernel

    kernel%name = 'schoenauer_triad'
    kernel%summary = 'bandwidth of a(i) = b(i) + c(i)*d(i)'
    kernel%arrays = 4
    kernel%loads = 3
    kernel%flops = 2
    kernel%element => element
    call run_kernel(kernel)
end program main
