!> Sums of six components: t_j(i) = t0_j(i) + t1_j(i) + t2_j(i).
module component_sums
    use pw_kinds, only: r8
    implicit none
    private

    public :: element

contains

    !> Inputs: t0, t1, t2, six components each.
    pure subroutine element(inputs, old, s, new)
        real(r8), intent(in) :: inputs(:), old(:), s
        real(r8), intent(out) :: new(:)

        associate (unused => old, unused_s => s)
        end associate
        new = inputs(1:6) + inputs(7:12) + inputs(13:18)
    end subroutine element

end module component_sums

program main
    use component_sums, only: element
    use pw_bundle, only: bundle_t
    use pw_harness, only: run_kernel
    implicit none
    type(bundle_t) :: kernel

    kernel%name = 'component_sums'
    kernel%summary = 'bandwidth of t_j(i) = t0_j(i) + t1_j(i) + t2_j(i), six components'
    kernel%inputs = 18
    kernel%outputs = 6
    kernel%loads = 18
    kernel%stores = 6
    kernel%flops = 12
    kernel%element => element
    call run_kernel(kernel)
end program main
