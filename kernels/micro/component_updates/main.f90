!> Updates of six components: v_j(i) = v_j(i) + s*t_j(i).
module component_updates
    use pw_kinds, only: r8
    implicit none
    private

    public :: element

contains

    pure subroutine element(inputs, old, s, new)
        real(r8), intent(in) :: inputs(:), old(:), s
        real(r8), intent(out) :: new(:)

        new = old + s*inputs
    end subroutine element

end module component_updates

program main
    use component_updates, only: element
    use pw_bundle, only: bundle_t
    use pw_harness, only: run_kernel
    use pw_kinds, only: r8
    implicit none
    type(bundle_t) :: kernel

    kernel%name = 'component_updates'
    kernel%summary = 'bandwidth of v_j(i) = v_j(i) + s*t_j(i), six components'
    kernel%inputs = 6
    kernel%outputs = 6
    kernel%loads = 12
    kernel%stores = 6
    kernel%flops = 12
    kernel%updates = .true.
    kernel%scalar = 3.0_r8
    kernel%element => element
    call run_kernel(kernel)
end program main
