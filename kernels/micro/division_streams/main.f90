!> Divisions by one array: q_j(i) = p_j(i) / p_1(i).
module division_streams
    use pw_kinds, only: r8
    implicit none
    private

    public :: element

contains

    !> Inputs: the metric, p_1 to p_5, six tracers.
    pure subroutine element(inputs, old, s, new)
        real(r8), intent(in) :: inputs(:), old(:), s
        real(r8), intent(out) :: new(:)

        associate (unused => old, unused_s => s)
        end associate
        new(1) = inputs(2)/inputs(1)
        new(2:) = inputs(3:)/inputs(2)
    end subroutine element

end module division_streams

program main
    use division_streams, only: element
    use pw_bundle, only: bundle_t
    use pw_harness, only: run_kernel
    implicit none
    type(bundle_t) :: kernel

    kernel%name = 'division_streams'
    kernel%summary = 'bandwidth of q_j(i) = p_j(i) / p_1(i)'
    kernel%inputs = 12
    kernel%outputs = 11
    kernel%loads = 6 + 6*2
    kernel%stores = 11
    kernel%flops = 11
    kernel%element => element
    call run_kernel(kernel)
end program main
