!> Sums of six components: t_j(i) = t0_j(i) + t1_j(i) + t2_j(i).
module component_sums
    use pw_bundle, only: bundle_t
    use pw_kinds, only: r8
    implicit none
    private

    type, extends(bundle_t), public :: component_sums_t
    contains
        procedure, nopass :: element
    end type component_sums_t

contains

    !> Inputs: t0, t1, t2, six components each.
    pure subroutine element(inputs, old, s, new)
        real(r8), intent(in) :: inputs(:), old(:), s
        real(r8), intent(out) :: new(:)

        new = inputs(1:6) + inputs(7:12) + inputs(13:18)
    end subroutine element

end module component_sums
